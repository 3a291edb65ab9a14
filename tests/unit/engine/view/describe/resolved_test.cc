#include "engine/view/describe/resolved.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/view/describe/schema.h"
#include "engine/view/list/sample_list.h"
#include "engine/view/rows/window_rows.h"
#include "engine/view/view.h"
#include "tests/unit/engine/dataset/memory_data.h"
#include "tests/unit/engine/view/mix/mixture.h"
#include "tests/unit/engine/view/provenance_of.h"
#include "tests/unit/engine/view/view_folder.h"

namespace batchfs {
namespace resolved_test {

using namespace std::string_literals;

struct ResolvedView : testing::Test {
  const std::shared_ptr<const Dataset> dataset =
      MemoryData()
          .declare("a", "<f8", {"time", "x"}, {10, 4}, {3, 4})
          .declare("b", "<f8", {"time", "x"}, {10, 4}, {10, 4})
          .add<double>("w", "<f8", {"time"}, {10}, {1, 2, 3, 4, 5, 1, 2, 3, 4, 0})
          .index("time", "<i4", std::vector<std::int32_t>{0, 6, 12, 18, 24, 30, 36, 42, 48, 54},
                 {{"units", "hours since 2000-01-01"}})
          .dataset();
  const ViewFolder folder;

  std::shared_ptr<const View> view(const std::string& json) const {
    return folder.parse(dataset, json);
  }
  Json resolved(const std::string& json) const { return resolved_view(*view(json)); }
};

using Parse = std::function<std::shared_ptr<const View>(const std::string& json)>;

/// Checks that view.json stands for an identical view, with an identical view.json.
void expect_same(const Parse& parse, const std::string& json) {
  SCOPED_TRACE(json);
  const auto first = parse(json);
  const Json text = resolved_view(*first);
  const auto second = parse(text.dump());
  EXPECT_EQ(resolved_view(*second), text);
  EXPECT_EQ(view_schema(*second), view_schema(*first));
  EXPECT_EQ(second->epoch_samples(), first->epoch_samples());
  ASSERT_EQ(second->batches(), first->batches());
  for (std::int64_t batch = 0; batch < first->batches(); ++batch)
    EXPECT_EQ(provenance_of(second, 2, batch), provenance_of(first, 2, batch));
}

/// A .npy file of numbers.
std::string npy(const std::vector<double>& numbers) {
  std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (" +
                       std::to_string(numbers.size()) + ",), }";
  header.resize(117, ' ');
  return "\x93NUMPY\x01\x00v\x00"s + header + "\n" +
         std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * 8);
}

TEST_F(ResolvedView, ReadsBackAsTheSameView) {
  folder.write("rows.csv", "time,kind,often\n#4,1,0.5\n#1,0,2\n#4,3,1\n#7,2,0\n");
  folder.write("weights.npy", npy({1, 0, 2, 3}));
  for (
      const char* json :
      {R"({"window": {"time": {"size": "12h", "stride": "6h"}}, "variables": ["a"], "batch": 2})",
       R"({"window": {"time": {"size": 2, "every": "12h", "origin": "first"}}, "variables": ["a"],
           "samples": {"where": {"time": {"hour": [12]}}}})",
       R"({"window": {"time": {"size": "18h", "edge": "pad", "pad_value": 3}}, "variables": ["a"]})",
       R"({"window": {"time": 1, "x": {"size": 2, "stride": 1}}, "order": {"shuffle": "block", "seed": 5},
           "tensors": {"t": {"variables": ["a"], "offsets": {"time": ["-6h", "12h"]}}}, "batch": 3,
           "epochs": {"count": 3, "samples": 11}, "missing": {"nan": "fill", "value": 2}})",
       R"({"window": {"time": 2}, "variables": ["a"], "samples": {"list": "rows.csv",
           "labels": ["kind"], "weights": {"column": "often"}}, "order": {"shuffle": "global"}})",
       R"({"window": {"time": 2}, "variables": ["a"], "batch": 2, "samples": {"list": "rows.csv",
           "weights": "weights.npy"}, "order": {"shuffle": "block", "seed": 1}})",
       R"({"window": {"time": 1}, "variables": ["b"], "samples": {"weights": {"variable": "w"}}})",
       R"({"variables": ["a", "b"], "xbatcher": {"input_dims": {"time": 2}, "batch_dims": {"x": 2}}})"})
    expect_same([this](const std::string& text) { return view(text); }, json);
}

TEST_F(ResolvedView, OfAMixtureReadsBackAsTheSameMixture) {
  const auto parse = [this](const std::string& text) {
    return parse_mixture({dataset, dataset}, text);
  };
  const std::string mix =
      R"({"mix": {"one": {"view": {"window": {"time": "12h"}, "variables": ["a"]},
      "weight": 3}, "two": {"view": {"window": {"time": {"size": 2, "stride": 1}}, "variables": ["a"],
      "order": {"shuffle": "block"}, "epochs": {"samples": 4}}, "weight": 1}})";
  expect_same(parse, mix + R"(, "batch": 3, "order": {"seed": 8}})");
  expect_same(parse, mix + R"(, "batch": {"size": 4, "mixing": "batch", "block": 8}})");
  expect_same(parse, mix + R"(, "batch": {"size": 4, "mixing": "stratified"}, "temperature": 2})");
  const Json own = resolved_view(*parse(mix + "}"))["mix"]["two"]["view"];
  EXPECT_EQ(own["epochs"], Json::parse(R"({"samples": 4})"));
  EXPECT_FALSE(own.contains("batch"));
  EXPECT_FALSE(own.contains("formats"));
}

TEST_F(ResolvedView, DurationsAreNumbersWhereWindowsCountPositions) {
  const Json json = resolved(R"({"window": {"time": {"size": "12h", "stride": "18h"}},
      "tensors": {"t": {"variables": ["a"], "offsets": {"time": ["-6h"]}}}})");
  EXPECT_EQ(json["window"],
            Json::parse(R"({"time": {"size": 2, "stride": 3, "wrap": false, "edge": "drop"}})"));
  EXPECT_EQ(json["tensors"]["t"]["offsets"]["time"], Json::parse(R"(["-6h"])"));  // as written
  EXPECT_FALSE(json.contains("variables"));
  const Json every = resolved(R"({"variables": ["a"], "window": {"time": {"size": 2,
                                  "every": "12h"}}})");
  EXPECT_EQ(every["window"]["time"]["every"], "12h");
  EXPECT_FALSE(every["window"]["time"].contains("stride"));
}

TEST_F(ResolvedView, AFileThatChangedIsAnotherView) {
  folder.write("rows.csv", "time\n#4\n#1\n");
  folder.write("weights.npy", npy({1, 2}));
  const auto first = view(R"({"window": {"time": 2}, "variables": ["a"],
      "samples": {"list": "rows.csv", "weights": "weights.npy"}})");
  const Json json = resolved_view(*first);
  EXPECT_EQ(json["samples"]["list"],
            Json({{"file", "rows.csv"}, {"digest", first->windows()->set().list()->digest()}}));
  EXPECT_EQ(json["samples"]["weights"]["file"], "weights.npy");
  EXPECT_EQ(view(json.dump())->samples(), 2);
  folder.write("weights.npy", npy({2, 1}));
  EXPECT_EQ(error_of([&] { view(json.dump()); }).code(), ErrorCode::invalid_argument);
  folder.write("weights.npy", npy({1, 2}));
  EXPECT_EQ(view(json.dump())->samples(), 2);
  folder.write("rows.csv", "time\n#4\n#2\n");
  EXPECT_EQ(error_of([&] { view(json.dump()); }).code(), ErrorCode::invalid_argument);
}

TEST_F(ResolvedView, HasTheNumbersOfNormalizeForItsOwnVariables) {
  const Json some = resolved(R"({"window": {"time": 1}, "variables": ["a"], "normalize": {
      "method": "zscore", "statistics": {"a": {"mean": 1, "std": 2}, "b": {"mean": 5, "std": 6}}}})");
  EXPECT_EQ(some["normalize"]["statistics"], Json::parse(R"({"a": {"mean": 1, "std": 2}})"));
  const Json none = resolved(R"({"window": {"time": 1}, "variables": ["a", "b"], "normalize": {
      "method": "log1p", "scale": 2, "except": ["b"]}})");
  EXPECT_EQ(none["normalize"]["variables"], Json({"a"}));
  EXPECT_FALSE(none["normalize"].contains("except"));
}

}  // namespace resolved_test
}  // namespace batchfs
