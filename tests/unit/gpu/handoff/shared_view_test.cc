#include "gpu/handoff/shared_view.h"

#include <cstring>

#include <gtest/gtest.h>

#include "tests/unit/engine/view/assembled.h"

namespace batchfs::handoff {
namespace shared_view_test {

TEST(SharedView, HasTextsAndCoordinates) {
  MemoryData data;
  data.declare("v", "<f4", {"x"}, {3}, {3}).index<std::int16_t>("x", "<i2", {7, 8, 9});
  const auto view = parse_view(data.dataset(), R"({"window": {"x": 1}, "batch": 2})");
  const SharedView shared = share_view(view);
  const std::string all(reinterpret_cast<const char*>(shared.texts.data()), shared.texts.size());
  EXPECT_EQ(Json::parse(all.substr(0, shared.schema_length)), view->schema());
  EXPECT_EQ(Json::parse(all.substr(shared.schema_length, shared.view_length)), view->resolved());
  const std::size_t begin = (shared.schema_length + shared.view_length + 7) / 8 * 8;
  EXPECT_EQ(all.size(), begin + shared.coordinates_length);
  std::int16_t values[3];
  std::memcpy(values, all.data() + begin + sizeof(CoordinateRecord), sizeof values);
  EXPECT_EQ(values[2], 9);
  EXPECT_EQ(shared.remainder, Remainder::keep);
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
  const auto old = welcome_message(shared, Mode::shm, 1),
             now = welcome_message(shared, Mode::shm, 2);
  EXPECT_EQ(old.size(), sizeof(WelcomeMessage));
  EXPECT_EQ(header(old).version, 1);
  EXPECT_EQ(now.size(), sizeof(WelcomeMessage) + sizeof(CoordinatesRecord));
  EXPECT_EQ(header(now).version, 2);
  EXPECT_EQ(header(now).length, now.size());
}

}  // namespace shared_view_test
}  // namespace batchfs::handoff
