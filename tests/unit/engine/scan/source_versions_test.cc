#include "engine/scan/source_versions.h"

#include <atomic>
#include <map>
#include <mutex>

#include <gtest/gtest.h>

#include "engine/store/state_listing.h"
#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace source_versions_test {

/// Objects have the versions that the test gives them.
class Versioned : public MemoryObjects {
 public:
  bool is_local() const override { return local; }
  bool can_list() const override { return true; }
  std::optional<std::uint64_t> state(const std::string& key) override {
    const std::lock_guard lock(mutex_);
    ++asked[key];
    if (key == broken) throw Error(ErrorCode::io, "the disk is on fire", key);
    if (key.starts_with("unknown/")) return std::nullopt;
    const auto found = versions.find(key);
    return found == versions.end() ? 0 : found->second;
  }
  std::vector<Entry> list(const std::string& prefix) override {
    std::vector<Entry> entries;
    for (const auto& [key, version] : versions)
      if (key.starts_with(prefix + "/")) entries.push_back({key.substr(prefix.size() + 1), false});
    return entries;
  }
  void stop() override { stopped = true; }

  std::map<std::string, std::uint64_t> versions;
  std::map<std::string, int> asked;
  std::string broken;
  std::atomic<bool> stopped = false;
  bool local = true;

 private:
  std::mutex mutex_;  // guards asked
};

/// A store whose listings contain the versions.
class Listed final : public Versioned, public StateListing {
 public:
  Listed() { local = false; }
  bool list_states(const std::string& prefix, const Visit& visit) override {
    ++listings;
    if (!error.empty()) throw Error(ErrorCode::io, error, prefix);
    if (!tells) return false;
    for (const auto& [key, version] : versions)
      if (key.starts_with(prefix + "/") && !visit(key, version)) break;
    return true;
  }

  std::atomic<int> listings = 0;
  bool tells = true;
  std::string error;
};

class SourceVersionsTest : public testing::Test {
 protected:
  SourceVersionsTest() {
    for (const char* path : {"t", "unknown/v"}) declare(path);
    for (int c = 0; c < 200; ++c) store_.versions["t/" + std::to_string(c)] = 1;
  }
  /// 200 chunks of 5.
  void declare(const std::string& path) { data_.declare(path, "<f4", {"x"}, {1000}, {5}); }
  SourceArray array(const std::string& path) {
    return {.name = path,
            .store = &store_,
            .metadata = std::make_shared<const ArrayMetadata>(data_.hierarchy.arrays.at(path))};
  }
  SourceVersions ask(const SourceVersions::Options& options = SourceVersions::Options()) {
    return SourceVersions({array("t"), array("unknown/v")}, options);
  }
  ErrorCode code_of_asking(const SourceVersions::Options& options) {
    return error_of([&] { ask(options); }).code();
  }

  Versioned store_;
  MemoryData data_;
};

TEST_F(SourceVersionsTest, AreTheSameForTheSameVersions) {
  const Json first = ask().digests();
  EXPECT_EQ(first.size(), 2u);
  for (const int threads : {1, 3}) EXPECT_EQ(ask({threads}).digests(), first);
  store_.local = false;
  EXPECT_EQ(ask().digests(), first);
  EXPECT_EQ(store_.asked.at("t/199"), 4);
}

TEST_F(SourceVersionsTest, DifferForTheArrayOfAChangedObject) {
  const Json first = ask().digests();
  store_.versions["t/7"] = 2;
  EXPECT_EQ(differing_arrays(first, ask().digests()), "'t'");
  store_.versions["t/7"] = 1;
  EXPECT_EQ(ask().digests(), first);
  store_.versions.erase("t/7");
  EXPECT_EQ(differing_arrays(first, ask().digests()), "'t'");
  store_.versions["t/7"] = 1;
  // The versions of two objects exchanged.
  store_.versions["t/8"] = 3;
  const Json other = ask().digests();
  std::swap(store_.versions["t/7"], store_.versions["t/8"]);
  EXPECT_EQ(differing_arrays(other, ask().digests()), "'t'");
}

TEST_F(SourceVersionsTest, OnlySelectedObjectsCount) {
  SourceArray part = array("t");
  part.objects = {std::vector<std::int64_t>{3, 5}};
  const Json first = SourceVersions({part}).digests();
  EXPECT_EQ(store_.asked.size(), 2u);
  store_.versions["t/4"] = 2;
  EXPECT_EQ(SourceVersions({part}).digests(), first);
  store_.versions["t/5"] = 2;
  EXPECT_NE(SourceVersions({part}).digests(), first);
  part.positions = 9;
  EXPECT_NE(SourceVersions({part}).digests(), first);
}

TEST_F(SourceVersionsTest, ListedObjectsGiveTheDigestOfTheGrid) {
  for (int c = 50; c < 200; ++c) store_.versions.erase("t/" + std::to_string(c));
  SourceArray listed = array("t");
  listed.lists = true;
  const Json first = SourceVersions({listed}).digests();
  EXPECT_EQ(store_.asked.size(), 50u);
  EXPECT_EQ(SourceVersions({array("t")}).digests(), first);
}

TEST_F(SourceVersionsTest, AListingOfVersionsGivesTheDigestsOfAskingForEach) {
  store_.versions.erase("t/9");
  store_.versions["t/zarr.json"] = store_.versions["t/200"] = store_.versions["t/1/1"] = 7;
  Listed listed;
  listed.versions = store_.versions;
  for (const bool lists : {false, true})
    for (const bool tells : {true, false}) {
      SourceArray one = array("t"), other = array("t");
      one.lists = other.lists = lists;
      other.store = &listed;
      listed.tells = tells;
      listed.listings = 0;
      listed.asked.clear();
      const SourceVersions expected({one}), versions({other});
      EXPECT_EQ(versions.digests(), expected.digests());
      EXPECT_EQ(listed.listings, 1);
      EXPECT_EQ(listed.asked.empty(), tells);
      listed.versions["t/9"] = 1;
      EXPECT_EQ(error_of([&] { versions.confirm(); }).code(), ErrorCode::stale);
      listed.versions.erase("t/9");
    }
}

TEST_F(SourceVersionsTest, FewObjectsOfManyAreAskedFor) {
  Listed listed;
  listed.versions = store_.versions;
  SourceArray part = array("t");
  part.store = &listed;
  part.objects = {std::vector<std::int64_t>{3, 5}};
  EXPECT_EQ(SourceVersions({part}).digests(), SourceVersions({[&] {
                                                SourceArray asked = part;
                                                asked.store = &store_;
                                                return asked;
                                              }()})
                                                  .digests());
  EXPECT_EQ(listed.listings, 0);
  std::vector<std::int64_t> many;
  for (int c = 0; c < 40; ++c) many.push_back(c);
  part.objects = {many};
  const Json first = SourceVersions({part}).digests();
  EXPECT_EQ(listed.listings, 1);
  part.store = &store_;
  EXPECT_EQ(SourceVersions({part}).digests(), first);
}

TEST_F(SourceVersionsTest, AListingThatFailsIsAnErrorUnlessItIsTolerated) {
  Listed listed;
  listed.versions = store_.versions;
  listed.error = "no listing today";
  SourceArray one = array("t");
  one.store = &listed;
  EXPECT_EQ(error_of([&] { SourceVersions({one}); }).code(), ErrorCode::io);
  EXPECT_EQ(SourceVersions({one}, {2, true}).digests(), SourceVersions({array("t")}).digests());
}

TEST_F(SourceVersionsTest, AnObjectThatAppearsIsFoundAtTheEnd) {
  store_.versions.erase("t/7");
  for (const bool lists : {false, true}) {
    SourceArray source = array("t");
    source.lists = lists;
    const SourceVersions versions({source});
    EXPECT_NO_THROW(versions.confirm());
    store_.versions["t/7"] = 1;
    const Error error = error_of([&] { versions.confirm(); });
    EXPECT_EQ(error.code(), ErrorCode::stale);
    EXPECT_NE(error.why().find("objects of 't'"), std::string::npos) << error.why();
    store_.versions.erase("t/7");
  }
}

TEST_F(SourceVersionsTest, WhereAllExistTheStoreItselfFindsChanges) {
  const SourceVersions versions({array("t")});
  versions.confirm();
  EXPECT_EQ(store_.asked.at("t/0"), 1);
  store_.versions["t/0"] = 2;
  EXPECT_EQ(error_of([&] { versions.confirm_all(); }).code(), ErrorCode::stale);
}

TEST_F(SourceVersionsTest, AnErrorEndsItUnlessItIsTolerated) {
  store_.broken = "t/150";
  EXPECT_EQ(code_of_asking({2}), ErrorCode::io);
  const Json first = ask({2, true}).digests();
  store_.broken = "";
  EXPECT_NE(ask({2, true}).digests(), first);
}

TEST_F(SourceVersionsTest, ItCanBeCancelled) {
  store_.local = false;
  EXPECT_EQ(code_of_asking({1, false, [] { return true; }}), ErrorCode::interrupted);
  EXPECT_TRUE(store_.stopped);
}

TEST(DifferingArrays, NamesTheFirstFew) {
  EXPECT_EQ(differing_arrays({{"a", "1"}}, {{"a", "1"}}), "");
  EXPECT_EQ(differing_arrays({{"a", "1"}, {"b", "1"}}, {{"a", "2"}, {"c", "1"}}), "'a', 'b', 'c'");
  EXPECT_EQ(differing_arrays({{"a", "1"}, {"b", "1"}, {"c", "1"}, {"d", "1"}, {"e", "1"}}, {}),
            "'a', 'b', 'c' and 2 more arrays");
}

TEST(SourceArrays, AreWhatTheSamplesReachAndTheCoordinates) {
  MemoryData data;
  const auto dataset = data.declare("t", "<f4", {"time", "x"}, {100, 8}, {10, 8})
                           .declare("u", "<f4", {"time", "x"}, {100, 8}, {10, 8})
                           .index("time", "<i8", counting<std::int64_t>(100))
                           .dataset();
  const auto view = View::parse(
      dataset,
      R"({"variables": ["t"], "window": {"time": 2}, "select": {"time": {"from": "#25", "to": "#44"}}})",
      "v", "test");
  std::map<std::string, SourceArray> arrays;
  for (SourceArray& array : source_arrays(*view)) arrays.emplace(array.name, std::move(array));
  ASSERT_EQ(arrays.size(), 2u);
  const SourceArray& t = arrays.at("t");
  ASSERT_EQ(t.objects.size(), 2u);
  EXPECT_EQ(t.objects[0], (std::vector<std::int64_t>{2, 3, 4}));
  EXPECT_EQ(t.objects[1], std::nullopt);  // all
  EXPECT_TRUE(arrays.at("time").objects.empty());
}

}  // namespace source_versions_test
}  // namespace batchfs
