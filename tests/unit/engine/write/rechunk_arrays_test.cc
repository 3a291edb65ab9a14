#include "engine/write/rechunk_arrays.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/store/memory_store.h"

namespace batchfs {
namespace rechunk_arrays_test {

std::string why_not(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.why();
  }
  return "";
}

TEST(RechunkArrays, LengthsAreParsed) {
  EXPECT_EQ(parse_lengths("time=1,latitude=721", "--chunks"),
            (LengthByDim{{"time", 1}, {"latitude", 721}}));
  EXPECT_EQ(parse_lengths("x=-1", "--chunks"), (LengthByDim{{"x", kWholeDim}}));
  for (const char* text : {"time", "=1", "time=0", "time=-2", "time=1.5", "time=", "time=1,",
                           "time=99999999999999999999"})
    EXPECT_NE(why_not([&] { parse_lengths(text, "--chunks"); }).find("DIM=LENGTH"),
              std::string::npos)
        << text;
  EXPECT_NE(why_not([] { parse_lengths("a=1,a=2", "--chunks"); }).find("twice"), std::string::npos);
}

TEST(RechunkArrays, PathsAreRelativeToTheGroup) {
  EXPECT_EQ(path_below("a/b/c", "a"), "b/c");
  EXPECT_EQ(path_below("a", "a"), "");
  EXPECT_EQ(path_below("a/b", ""), "a/b");
}

class ChosenTest : public testing::Test {
 protected:
  ChosenTest() {
    add("t2m", {"time", "lat", "lon"}, {50, 32, 48}, {7, 32, 48}, {{"coordinates", "height run"}});
    add("lat", {"lat"}, {32}, {32});
    add("lon", {"lon"}, {48}, {48});
    add("time", {"time"}, {50}, {50});
    add("height", {}, {}, {});
    add("other", {"lat"}, {32}, {16});
  }
  void add(const std::string& name, const std::vector<std::string>& dims,
           const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& chunks,
           Json attributes = Json::object()) {
    attributes["_ARRAY_DIMENSIONS"] = dims;
    hierarchy_->arrays.emplace(name, parse_array_v2(name,
                                                    {{"zarr_format", 2},
                                                     {"shape", shape},
                                                     {"chunks", chunks},
                                                     {"dtype", "<f4"},
                                                     {"compressor", nullptr},
                                                     {"fill_value", nullptr},
                                                     {"order", "C"},
                                                     {"filters", nullptr}},
                                                    std::move(attributes), name + "/.zarray"));
  }
  std::map<std::string, OutputChunks> chosen(const RechunkOptions& options) const {
    std::map<std::string, OutputChunks> result;
    for (const RechunkArray& one : choose_arrays(store_, hierarchy_, options))
      result[one.output.path] = one.output.chunks;
    return result;
  }
  std::vector<std::string> names(const RechunkOptions& options) const {
    std::vector<std::string> result;
    for (const auto& [name, chunks] : chosen(options)) result.push_back(name);
    return result;
  }

  const std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>();
  const std::shared_ptr<Hierarchy> hierarchy_ = std::make_shared<Hierarchy>();
};

TEST_F(ChosenTest, VariablesBringTheirCoordinates) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(names({}), (Names{"height", "lat", "lon", "other", "t2m", "time"}));
  EXPECT_EQ(names({.variables = {"t2m"}}), (Names{"height", "lat", "lon", "t2m", "time"}));
  EXPECT_EQ(names({.variables = {"other"}}), (Names{"lat", "other"}));
  EXPECT_NE(why_not([&] { chosen({.variables = {"tm2"}}); }).find("t2m"), std::string::npos);
}

TEST_F(ChosenTest, ChunksAreClippedAndCoordinatesKeepTheirs) {
  auto chunks = chosen({.chunks = {{"time", 1}, {"lat", 5}, {"lon", 1000}}});
  EXPECT_EQ(chunks["t2m"].chunk, (Dims{1, 5, 48}));
  EXPECT_EQ(chunks["t2m"].object, (Dims{1, 5, 48}));
  EXPECT_EQ(chunks["lat"].chunk, (Dims{32}));
  EXPECT_EQ(chunks["other"].chunk, (Dims{5}));
  chunks = chosen({.chunks = {{"lat", 8}}, .variables = {"lat", "t2m"}});  // named: no coordinate
  EXPECT_EQ(chunks["lat"].chunk, (Dims{8}));
  EXPECT_EQ(chunks["t2m"].chunk, (Dims{7, 8, 48}));
  EXPECT_NE(why_not([&] { chosen({.chunks = {{"tine", 1}}}); }).find("'time'"), std::string::npos);
}

TEST_F(ChosenTest, ShardsAreWholeChunks) {
  const auto chunks = chosen({.chunks = {{"time", 3}}, .shards = {{"time", kWholeDim}}});
  EXPECT_EQ(chunks.at("t2m").object, (Dims{51, 32, 48}));
  EXPECT_TRUE(chunks.at("t2m").is_sharded);
  EXPECT_FALSE(chunks.at("other").is_sharded);
  EXPECT_EQ(chosen({.chunks = {{"time", 3}}, .shards = {{"time", 600}}}).at("t2m").object,
            (Dims{51, 32, 48}));
  EXPECT_NE(why_not([&] {
              chosen({.chunks = {{"time", 4}}, .shards = {{"time", 6}}});
            }).find("not a whole number"),
            std::string::npos);
}

TEST_F(ChosenTest, AnArrayThatCannotBeReadIsNamed) {
  hierarchy_->arrays.at("other").unsupported = "the codec 'nobody.has.this' is unknown";
  try {
    chosen({});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_supported);
    EXPECT_EQ(error.where(), "other");
    EXPECT_NE(error.why().find("--variables"), std::string::npos);
  }
  EXPECT_NO_THROW(chosen({.variables = {"t2m"}}));
}

}  // namespace rechunk_arrays_test
}  // namespace batchfs
