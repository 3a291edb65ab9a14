#include "engine/view/normalize.h"

#include <cmath>

#include <gtest/gtest.h>

#include "engine/view/describe/resolved.h"
#include "engine/view/normalize_rule.h"
#include "engine/view/spec.h"
#include "engine/view/view.h"
#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace normalize_test {

std::shared_ptr<const Dataset> dataset() {
  return MemoryData()
      .index<float>("level", "<f4", {500, 700.1f, 850})
      .index<std::int64_t>("time", "<i8", {0, 24}, {{"units", "hours since 2000-01-01"}})
      .add("t", "<f4", {"time", "level"}, {2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6})
      .add("n", "<i4", {"time"}, {2}, std::vector<std::int32_t>{1, 2})
      .add("flag", "|b1", {"time"}, {2}, std::vector<std::uint8_t>{0, 1})
      .dataset();
}

NormalizeSpec spec(const Json& statistics, const std::string& method = "zscore") {
  const Json json = {{"method", method}, {"statistics", statistics}};
  return parse_normalize(JsonRef(json, "normalize"), {});
}

/// The numbers for variable `name`, whose level has these positions selected.
std::shared_ptr<const Normalization> resolve(const NormalizeSpec& spec,
                                             const Positions& levels = Positions::range(0, 3),
                                             const std::string& name = "t") {
  const auto data = dataset();
  const std::map<std::string, Positions> selected = {{"time", Positions::range(0, 2)},
                                                     {"level", levels}};
  auto numbers = resolve_normalization(spec, *data, data->variable(name), selected);
  check_normalization(spec, *data, data->variable(name), selected,
                      [](const std::vector<std::size_t>&) { return Reached(); });
  return numbers;
}

TEST(Normalize, OnePairForTheWholeVariable) {
  const auto zscore = resolve(spec({{"t", {{"mean", 3}, {"std", 2.5}}}}));
  EXPECT_EQ(zscore->subtract, (std::vector<double>{3}));
  EXPECT_EQ(zscore->divide, (std::vector<double>{2.5}));
  EXPECT_FALSE(zscore->by_position());
  const auto minmax = resolve(spec({{"t", {{"min", -1}, {"max", 3}}}}, "minmax"));
  EXPECT_EQ(minmax->subtract, (std::vector<double>{-1}));
  EXPECT_EQ(minmax->divide, (std::vector<double>{4}));
}

TEST(Normalize, NumbersBelongToLabels) {
  // 700.1 is the text of the float32 coordinate; its exact value is 700.0999755859375.
  for (double middle : {700.1, 700.0999755859375}) {
    const auto result = resolve(spec({{"t",
                                       {{"dims", {"level"}},
                                        {"coordinates", {{"level", {850, middle, 1000, 500}}}},
                                        {"mean", {8, 7, 10, 5}},
                                        {"std", {0.8, 0.7, 0, 0.5}}}}}));
    EXPECT_TRUE(result->by_position());
    EXPECT_EQ(result->strides, (Dims{0, 1}));
    EXPECT_EQ(result->subtract, (std::vector<double>{5, 7, 8}));
    EXPECT_EQ(result->divide, (std::vector<double>{0.5, 0.7, 0.8}));
  }
}

TEST(Normalize, WithoutLabelsNumbersAreThoseOfTheSelection) {
  const Json statistics = {{"t", {{"dims", {"level"}}, {"mean", {8, 5}}, {"std", {2, 1}}}}};
  const auto result = resolve(spec(statistics), Positions::list({2, 0}));
  EXPECT_EQ(result->subtract[0], 5);
  EXPECT_TRUE(std::isnan(result->subtract[1]));
  EXPECT_EQ(result->subtract[2], 8);
  const Error error = error_of([&] { resolve(spec(statistics)); });
  EXPECT_NE(error.why().find("list of 3 numbers along 'level'"), std::string::npos) << error.why();
}

TEST(Normalize, NestedListsFollowDims) {
  const auto result = resolve(spec({{"t",
                                     {{"dims", {"level", "time"}},
                                      {"mean", {{1, 2}, {3, 4}, {5, 6}}},
                                      {"std", {{1, 1}, {1, 1}, {1, 1}}}}}}));
  EXPECT_EQ(result->strides, (Dims{1, 2}));
  EXPECT_EQ(result->subtract, (std::vector<double>{1, 2, 3, 4, 5, 6}));
}

TEST(Normalize, AFileMayWrapItsVariables) {
  const Json json = {{"method", "zscore"}, {"statistics", "stats.json"}};
  std::string asked;
  const NormalizeSpec result =
      parse_normalize(JsonRef(json, "normalize"), [&](const std::string& path) {
        asked = path;
        return std::string(R"({"store": "s", "variables": {"t": {"mean": 1, "std": 2}}})");
      });
  EXPECT_EQ(asked, "stats.json");
  EXPECT_EQ(resolve(result)->divide, (std::vector<double>{2}));
  const Error broken = error_of(
      [&] { parse_normalize(JsonRef(json, "normalize"), [](const std::string&) { return "{"; }); });
  EXPECT_NE(broken.why().find("normalize.statistics: stats.json"), std::string::npos)
      << broken.why();
  EXPECT_THROW(parse_normalize(JsonRef(json, "normalize"), {}), Error);
}

TEST(Normalize, RefusesWhatDoesNotServe) {
  const Json t = {{"mean", 1}, {"std", 2}};
  auto refused = [&](const Json& entry, const std::string& words,
                     const std::string& method = "zscore") {
    const Error error = error_of([&] { resolve(spec({{"t", entry}}, method)); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_NE(error.why().find(words), std::string::npos) << error.why();
    EXPECT_NE(error.why().find(R"("except": ["t"])"), std::string::npos) << error.why();
  };
  refused({{"mean", 1}}, "no \"std\"");
  refused({{"mean", "1"}, {"std", 2}}, "not a number");
  refused({{"mean", 1}, {"std", 0}}, "'t' is constant");
  refused({{"mean", 1}, {"std", nullptr}}, "no finite \"std\" of 't'");
  refused({{"min", 1}, {"max", 1}}, "'t' is constant", "minmax");
  refused({{"min", -1e308}, {"max", 1.7e308}}, "makes no sense", "minmax");
  refused({{"dims", {"lat"}}, {"mean", {1}}, {"std", {1}}}, "'lat', which it does not have");
  refused({{"dims", {"level", "level"}}, {"mean", {1}}, {"std", {1}}}, "twice");
  refused({{"dims", {"level"}}, {"mean", {1, 2, 3}}, {"std", {1, 0, 1}}},
          "constant at level=700.1");
  refused({{"dims", {"level"}},
           {"coordinates", {{"level", {500, 850}}}},
           {"mean", {1, 2}},
           {"std", {1, 1}}},
          "at level=700.1");
  refused(Json::array(), "not an object");
  const Error flag = error_of([&] {
    resolve(spec({{"flag", t}}), Positions::range(0, 3), "flag");
  });
  EXPECT_NE(flag.why().find("'flag' is bool"), std::string::npos) << flag.why();
}

TEST(Normalize, NumbersMayLackWherePositionsAreNotReached) {
  const auto data = dataset();
  const Variable& variable = data->variable("t");
  const std::map<std::string, Positions> selected = {{"time", Positions::range(0, 2)},
                                                     {"level", Positions::range(0, 3)}};
  const auto why = [&](const Json& std, const Positions& levels) {
    const NormalizeSpec of =
        spec({{"t", {{"dims", {"level"}}, {"mean", {1, nullptr, 3}}, {"std", std}}}});
    EXPECT_TRUE(std::isnan(resolve_normalization(of, *data, variable, selected)->subtract[1]));
    try {
      check_normalization(of, *data, variable, selected, [&](const std::vector<std::size_t>&) {
        return Reached{{Positions::range(0, 2), levels}, nullptr};
      });
    } catch (const Error& error) {
      return error.why();
    }
    return std::string();
  };
  EXPECT_EQ(why({1, nullptr, 1}, Positions::list({0, 2})), "");
  EXPECT_NE(why({1, nullptr, 1}, Positions::list({0, 1})).find("\"mean\" of 't' at level=700.1"),
            std::string::npos);
  EXPECT_NE(why({1, nullptr, 0}, Positions::list({0, 2})).find("constant at level=850"),
            std::string::npos);
  EXPECT_EQ(why({1, nullptr, 0}, Positions::list({0})), "");
}

TEST(Normalize, AppliesToFloatsUnlessItSaysWhich) {
  const auto data = dataset();
  NormalizeSpec all = spec(Json::object());
  EXPECT_TRUE(all.applies_to(data->variable("t")));
  EXPECT_FALSE(all.applies_to(data->variable("n")));
  all.except = {"t"};
  EXPECT_FALSE(all.applies_to(data->variable("t")));
  NormalizeSpec some = spec(Json::object());
  some.variables = {"n"};
  EXPECT_TRUE(some.applies_to(data->variable("n")));
  EXPECT_FALSE(some.applies_to(data->variable("t")));
}

TEST(Normalize, TheViewShowsTheNumbersItUses) {
  ViewOptions options;
  options.read_file = [](const std::string&) {
    return std::string(
        R"({"variables": {"t": {"mean": 1, "std": 2, "max": 9}, "other": {"mean": 0}}})");
  };
  const auto view =
      View::parse(dataset(), R"({"variables": ["t", "n"], "window": {"time": 1}, "dtype": "float16",
                     "normalize": {"method": "zscore", "statistics": "s.json"}})",
                  "v", "v.json", options);
  EXPECT_EQ(resolved_view(*view)["normalize"]["statistics"],
            (Json{{"t", {{"mean", 1}, {"std", 2}, {"max", 9}}}}));
  EXPECT_EQ(view->tensors()[0].type.name(), "float16");
  EXPECT_EQ(view->tensors()[1].type.name(), "int32");
}

}  // namespace normalize_test
}  // namespace batchfs
