#include "gpu/handoff/shared_view.h"

#include <cstring>

#include <gtest/gtest.h>

#include "engine/view/describe/resolved.h"
#include "engine/view/describe/schema.h"
#include "engine/view/spec.h"
#include "tests/unit/engine/view/assembled.h"

namespace batchfs::handoff {
namespace shared_view_test {

TEST(SharedView, HasTextsAndCoordinates) {
  MemoryData data;
  data.declare("v", "<f4", {"x"}, {3}, {3}).index<std::int16_t>("x", "<i2", {7, 8, 9});
  const auto view = parse_view(data.dataset(), R"({"window": {"x": 1}, "batch": 2})");
  const SharedView shared = share_view(view);
  const auto description = shared.description({});
  const MemoryFile& file = description->file;
  const std::string all(reinterpret_cast<const char*>(file.data()), file.size());
  EXPECT_EQ(Json::parse(all.substr(0, description->schema_length)), view_schema(*view));
  EXPECT_EQ(Json::parse(all.substr(description->schema_length, description->view_length)),
            resolved_view(*view));
  const std::size_t begin = (description->schema_length + description->view_length + 7) / 8 * 8;
  EXPECT_EQ(all.size(), begin + description->coordinates_length);
  std::int16_t values[3];
  std::memcpy(values, all.data() + begin + sizeof(CoordinateRecord), sizeof values);
  EXPECT_EQ(values[2], 9);
  EXPECT_EQ(shared.remainder, Remainder::keep);
}

TEST(SharedView, ItsDescriptionTakesMemoryWhileAReaderHoldsIt) {
  MemoryData data;
  data.declare("v", "<f4", {"x"}, {3}, {3}).index<std::int16_t>("x", "<i2", {7, 8, 9});
  const SharedView shared =
      share_view(parse_view(data.dataset(), R"({"window": {"x": 1}, "batch": 2})"));
  Budget budget(1 << 20);
  const Reserve reserve = [&budget](std::uint64_t bytes, const std::string& what) {
    auto reservation = budget.try_reserve(bytes);
    if (!reservation) throw Error(ErrorCode::no_memory, what);
    return reservation;
  };
  EXPECT_EQ(budget.used(), 0U) << "before a reader comes";
  auto first = shared.description(reserve);
  EXPECT_EQ(budget.used(), first->file.size());
  auto second = shared.description(reserve);
  EXPECT_EQ(first, second);
  EXPECT_EQ(budget.used(), first->file.size());
  first = second = nullptr;
  EXPECT_EQ(budget.used(), 0U);
  const auto rest = budget.reserve(1 << 20);
  EXPECT_THROW(shared.description(reserve), Error);
}

/// Why the view does not exist; empty if it does.
std::string refusal(const SharedViews& views, const std::string& name) {
  try {
    find_view(views, name);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(SharedView, IsFoundByItsNameOrItsPart) {
  MemoryData data;
  data.declare("v", "<f4", {"x"}, {4}, {4});
  const auto view = [&](const std::string& name, const std::string& part) {
    const std::string text =
        part.empty() ? R"({"window": {"x": 1}})"
                     : R"({"window": {"x": 1}, "split": {"parts": {"train": [{"x": {"to": "#2"}}],
                          "val": "rest"}}})";
    ViewOptions options;
    if (!part.empty()) options.part = part;
    return std::make_shared<const SharedView>(
        share_view(View::parse(data.dataset(), text, name, "", options)));
  };
  SharedViews views;
  views.push_back(view("a", ""));
  EXPECT_EQ(find_view(views, ""), views[0]);
  views.push_back(view("b", "train"));
  views.push_back(view("b", "val"));
  views.push_back(view("train", ""));
  EXPECT_EQ(find_view(views, "a")->view->name(), "a");
  EXPECT_EQ(find_view(views, "b-val")->view->name(), "b-val");
  EXPECT_EQ(find_view(views, "val")->view->name(), "b-val");
  EXPECT_EQ(find_view(views, "train")->view->name(), "train") << "a name before a part";
  EXPECT_EQ(refusal(views, ""), "say which view: there are a, b-train, b-val, train");
  EXPECT_EQ(refusal(views, "xyz"), "there is no view 'xyz'; there are a, b-train, b-val, train");
  views.push_back(view("c", "val"));
  EXPECT_NE(refusal(views, "val"), "") << "the part of two";
}

TEST(SharedView, TheWelcomeNamesTheReading) {
  MemoryData data;
  data.declare("v", "<f4", {"x"}, {3}, {3});
  const SharedViews views =
      share_views({parse_view(data.dataset(), R"({"window": {"x": 1}})")}, nullptr, {7, 3});
  const auto bytes =
      welcome_message(*views.front(), *views.front()->description({}), Mode::shm, kVersion);
  ReadingRecord reading;
  ASSERT_GE(bytes.size(), sizeof reading);
  std::memcpy(&reading, bytes.data() + bytes.size() - sizeof reading, sizeof reading);
  EXPECT_EQ(reading.session, 7u);
  EXPECT_EQ(reading.number, 3u);
}

TEST(SharedView, AReaderOfVersion1IsToldWhatItKnows) {
  MemoryData data;
  data.declare("v", "<f4", {"x"}, {3}, {3});
  const SharedView shared = share_view(parse_view(data.dataset(), R"({"window": {"x": 1}})"));
  const auto header = [](const std::vector<std::byte>& bytes) {
    Header read;
    std::memcpy(&read, bytes.data(), sizeof read);
    return read;
  };
  const auto description = shared.description({});
  const auto old = welcome_message(shared, *description, Mode::shm, 1),
             now = welcome_message(shared, *description, Mode::shm, 2);
  EXPECT_EQ(old.size(), sizeof(WelcomeMessage));
  EXPECT_EQ(header(old).version, 1);
  EXPECT_EQ(now.size(), sizeof(WelcomeMessage) + sizeof(CoordinatesRecord));
  EXPECT_EQ(header(now).version, 2);
  EXPECT_EQ(header(now).length, now.size());
}

}  // namespace shared_view_test
}  // namespace batchfs::handoff
