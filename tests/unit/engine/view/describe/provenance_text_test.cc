#include "engine/view/describe/provenance_text.h"

#include <gtest/gtest.h>

#include "engine/base/json_text.h"
#include "tests/unit/engine/view/provenance_of.h"
#include "tests/unit/engine/view/walked_views.h"

namespace batchfs {
namespace provenance_text_test {

using namespace walked_views;

TEST(ProvenanceText, HasTheFormOfJsonTextAndWhatTheViewSays) {
  const MemoryData of = data();
  const auto dataset = of.dataset();
  for (const char* json : kViews) {
    const auto view = parse_view(dataset, json);
    for (const std::int64_t batch : {std::int64_t{0}, view->batches() - 1}) {
      const std::string text = provenance_text_of(view, 2, batch);
      const Json about = Json::parse(text);
      EXPECT_EQ(text, json_text(about) + "\n") << json;
      EXPECT_EQ(about["samples"], Json(view->batch_samples(2, batch)));
      Json starts = Json::array();
      for (const Dims& each : view->window_starts(2, batch))
        starts.push_back(std::vector<std::int64_t>(each.begin(), each.end()));
      EXPECT_EQ(about["windows"].size(), starts.size());
      if (about["samples"].size() == starts.size()) {
        EXPECT_EQ(about["starts"], starts);
      }
      Json chunks = Json::array();
      for (const auto& [variable, chunk] : planned(*view, 2, batch)) {
        const Array& array = *view->variables()[variable]->array;
        chunks.push_back(array.chunk_name(array.grid().chunk(chunk)));
      }
      EXPECT_EQ(about["chunks"], chunks) << json;
    }
  }
}

TEST(ProvenanceText, ForksContinueLikeTheirOrigin) {
  const MemoryData of = data();
  const auto dataset = of.dataset();
  for (const char* json : kViews) {
    const auto view = parse_view(dataset, json);
    Budget budget(1 << 20);
    ProvenanceText source(view, 2, 0, {{"id", "a"}}, reserve_from(budget));
    const auto rest = [](TextSource& text) {
      std::string all;
      for (std::string piece = text.next(); !piece.empty(); piece = text.next()) all += piece;
      return all;
    };
    const auto before = source.fork();
    ASSERT_NE(before, nullptr);
    const std::string whole = rest(*source.fork());
    std::string made;
    for (std::string piece = source.next(); !piece.empty(); piece = source.next()) {
      made += piece;
      if (const auto fork = source.fork()) {
        EXPECT_EQ(made + rest(*fork), whole) << json;
      }
    }
    EXPECT_EQ(made, whole);
    EXPECT_EQ(rest(*before), whole);
  }
}

TEST(ProvenanceText, NamesTheSnapshotLast) {
  const MemoryData of = data();
  const auto view = parse_view(of.dataset(), kViews[0]);
  const std::string text = provenance_text_of(view, 0, 0, {{"id", "a"}, {"refs", {1, 2}}});
  const Json about = Json::parse(text);
  EXPECT_EQ(about.back(), Json({{"id", "a"}, {"refs", {1, 2}}}));
  EXPECT_EQ(text, json_text(about) + "\n");
}

TEST(ProvenanceText, OfAMillionSamplesIsMadeInSmallPieces) {
  MemoryData of;
  of.declare("v", "<f4", {"time"}, {1 << 20}, {1 << 10});
  const auto view = parse_view(
      of.dataset(), R"({"window": {"time": 1}, "batch": 1048576, "order": {"shuffle": "global"}})");
  Budget budget(1 << 10);  // a bit for each of the 1024 chunks, and what the set had before
  ProvenanceText source(view, 0, 0, nullptr, reserve_from(budget));
  std::size_t size = 0, chunks = 0, forks = 0, after_fork = 0;
  for (std::string piece = source.next(); !piece.empty(); piece = source.next()) {
    EXPECT_LT(piece.size(), 256u << 10);
    if (source.fork() != nullptr) {
      ++forks;
      after_fork = 0;
    }
    after_fork += piece.size();
    size += piece.size();
    for (std::size_t at = piece.find("\"v/"); at != std::string::npos;
         at = piece.find("\"v/", at + 1))
      ++chunks;
  }
  EXPECT_GT(size, 50u << 20);
  EXPECT_EQ(chunks, 1024u);
  EXPECT_GT(forks, size >> 18);
  EXPECT_LT(after_fork, 256u << 10);  // only the list of chunks is made as one
  EXPECT_EQ(source.next(), "");
}

TEST(ProvenanceText, ThrowsWhereTheChunksAreTooMany) {
  MemoryData of;
  of.declare("v", "<f4", {"time"}, {100'000}, {1});
  const auto view = parse_view(of.dataset(), R"({"window": {"time": 1}, "batch": 100000})");
  Budget budget(1 << 10);
  ProvenanceText source(view, 0, 0, nullptr, reserve_from(budget));
  const auto read = [&] {
    while (!source.next().empty()) {
    }
  };
  EXPECT_THROW(read(), Error);
}

}  // namespace provenance_text_test
}  // namespace batchfs
