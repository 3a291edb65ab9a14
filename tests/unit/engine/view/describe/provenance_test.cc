#include "engine/view/describe/provenance.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "engine/base/dims.h"
#include "engine/base/json.h"
#include "engine/view/describe/json_writer.h"
#include "engine/view/describe/provenance_list.h"
#include "engine/view/view.h"
#include "tests/unit/engine/view/mix/mixture.h"
#include "tests/unit/engine/view/walked_views.h"

namespace batchfs {
namespace provenance_test {

using namespace walked_views;
using testing::ElementsAre;

/// The elements of a list, `at_a_time` of them written in one call.
Json written(const ProvenanceList& list, std::int64_t at_a_time) {
  JsonWriter out;
  out.begin_array();
  for (std::int64_t first = 0; first < list.count; first += at_a_time)
    list.write({first, std::min(at_a_time, list.count - first)}, out);
  out.end_array();
  return Json::parse(out.take());
}

std::vector<std::string> keys(const std::vector<ProvenanceList>& lists) {
  std::vector<std::string> result;
  for (const ProvenanceList& list : lists)
    result.push_back((list.is_coordinate ? "coordinates." : "") + list.key);
  return result;
}

const ProvenanceList& find(const std::vector<ProvenanceList>& lists, const std::string& key) {
  return *std::find_if(lists.begin(), lists.end(),
                       [&](const ProvenanceList& list) { return list.key == key; });
}

Json starts_of(const View& view, std::int64_t epoch, std::int64_t batch) {
  Json starts = Json::array();
  for (const Dims& each : view.window_starts(epoch, batch))
    starts.push_back(std::vector<std::int64_t>(each.begin(), each.end()));
  return starts;
}

TEST(Provenance, ListsAreAsLongAsTheySayHoweverTheyAreWritten) {
  const auto dataset = data().dataset();
  for (const char* json : kViews) {
    const auto view = parse_view(dataset, json);
    const std::int64_t batch = view->batches() - 1;
    const auto lists = provenance_lists(*view, 1, batch);
    for (const ProvenanceList& list : lists) {
      const bool by_sample = list.key == "samples" || list.key == "starts";
      EXPECT_EQ(list.count, by_sample ? view->sample_count(batch) : view->row_count(batch));
      const Json whole = written(list, list.count);
      EXPECT_EQ(std::ssize(whole), list.count) << json << " " << list.key;
      EXPECT_EQ(written(list, 1), whole) << json << " " << list.key;
    }
    EXPECT_EQ(written(find(lists, "samples"), 2), Json(view->batch_samples(1, batch)));
    Json starts = starts_of(*view, 1, batch);
    if (view->patches() != nullptr) starts = Json::array({starts[0]});  // a sample is all patches
    EXPECT_EQ(written(find(lists, "starts"), 2), starts) << json;
  }
}

TEST(Provenance, WindowsAreArrayIndices) {
  const auto dataset = data().dataset();
  const auto windows = [&](const std::string& keys, std::int64_t batch) {
    const auto view = parse_view(dataset, R"({"variables": ["q"], )" + keys + "}");
    return written(find(provenance_lists(*view, 0, batch), "windows"), 9);
  };
  EXPECT_EQ(windows(R"("window": {"time": {"size": 4, "stride": 3}}, "batch": 2)", 1),
            Json::parse(R"([{"time": [6, 10]}, {"time": [9, 13]}])"));
  EXPECT_EQ(windows(R"("window": {"x": {"size": 3, "stride": 6, "wrap": true}}, "batch": 2)", 0),
            Json::parse(R"([{"x": [0, 3]}, {"x": [6, 1]}])"));
  EXPECT_EQ(windows(R"("window": {"time": {"size": 4, "edge": "pad"}})", 5),
            Json::parse(R"([{"time": [20, 23]}])"));
  EXPECT_EQ(windows(R"("window": {"x": 2}, "select": {"x": [7, 1, 4, 5]}, "batch": 2)", 0),
            Json::parse(R"([{"x": [7, 2]}, {"x": [4, 6]}])"));
}

TEST(Provenance, LabelsAreOfTheDimensionsThatHaveThem) {
  const auto view = parse_view(data().dataset(), R"({"variables": ["q"], "batch": 3,
      "window": {"time": 20, "x": {"size": 1, "stride": 3}}, "select": {"x": {"from": 1}}})");
  const auto lists = provenance_lists(*view, 0, 0);
  EXPECT_THAT(keys(lists), ElementsAre("samples", "windows", "starts", "coordinates.x"));
  EXPECT_EQ(written(lists[3], 3), Json::parse("[1.0, 4.0, 7.0]"));
  EXPECT_EQ(written(lists[2], 3), Json::parse("[[0, 0], [0, 3], [0, 6]]"));
}

TEST(Provenance, SamplesOfAMixtureAreThoseOfItsViews) {
  const auto dataset = data().dataset();
  const auto view = parse_mixture({dataset, dataset}, R"({"mix": {
      "one": {"view": {"window": {"x": 1}, "variables": ["q"]}},
      "two": {"view": {"window": {"x": 1}, "variables": ["q"], "select": {"x": {"from": 5}}},
              "store": "era"}}, "batch": 11})");
  const auto lists = provenance_lists(*view, 0, 0);
  EXPECT_THAT(keys(lists), ElementsAre("samples", "components", "component_samples", "windows",
                                       "starts", "coordinates.x"));
  Json all[6];
  for (std::size_t i = 0; i < lists.size(); ++i) {
    all[i] = written(lists[i], 11);
    EXPECT_EQ(written(lists[i], 3), all[i]) << lists[i].key;
  }
  EXPECT_EQ(all[4], starts_of(*view, 0, 0));
  for (std::size_t i = 0; i < 11; ++i) {
    const auto number = all[0][i].get<std::int64_t>(), own = number % 8, x = own + number / 8 * 5;
    EXPECT_EQ(all[1][i], number < 8 ? "one" : "two");
    EXPECT_EQ(all[2][i], own);
    EXPECT_EQ(all[3][i]["x"], Json({x, x + 1}));
    EXPECT_EQ(all[4][i], Json::array({number}));
    EXPECT_EQ(all[5][i], static_cast<double>(x));
  }
  EXPECT_EQ(chunk_label(*view, 0, 4), "q/4.0");
  EXPECT_EQ(chunk_label(*view, 1, 4), "era:q/4.0");
}

}  // namespace provenance_test
}  // namespace batchfs
