#include "tools/cli/stores/consolidated_above.h"

#include <gmock/gmock.h>

#include "engine/base/error.h"
#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace consolidated_above_test {

using testing::ElementsAre;

/// Stores by URL; one that is asked for is noted.
struct Server {
  std::map<std::string, std::shared_ptr<MemoryObjects>> stores;
  std::vector<std::string> asked;

  std::optional<Hierarchy> find(const std::string& url) {
    asked.clear();
    return hierarchy_from_above(url, 1 << 20, [&](const std::string& place) {
      asked.push_back(place);
      const auto it = stores.find(place);
      return std::shared_ptr<Store>(it == stores.end() ? std::make_shared<MemoryObjects>()
                                                       : it->second);
    });
  }
};

TEST(ConsolidatedAbove, IsLookedForUpToTheServer) {
  Server server;
  EXPECT_FALSE(server.find("http://h:80/a/b/c/"));
  EXPECT_THAT(server.asked, ElementsAre("http://h:80/a/b", "http://h:80/a", "http://h:80"));
  EXPECT_FALSE(server.find("https://h/a"));
  EXPECT_THAT(server.asked, ElementsAre("https://h"));
  EXPECT_FALSE(server.find("https://h/"));
  EXPECT_TRUE(server.asked.empty());
  for (const char* url :
       {"s3://b/a/c", "/a/b/c", "http://h/a/b?key=1", "http://h/a/%2e%2e/c/d%20"}) {
    EXPECT_FALSE(server.find(url)) << url;
    EXPECT_TRUE(server.asked.empty()) << url;
  }
  EXPECT_FALSE(server.find("http://h/1/2/3/4/5/6/7/8/9/10/11/12"));
  EXPECT_EQ(server.asked.size(), 8u);
}

TEST(ConsolidatedAbove, GivesTheGroupThatTheUrlNames) {
  Server server;
  const auto root = server.stores["http://h/s.zarr"] = std::make_shared<MemoryObjects>();
  const Json array = {{"zarr_format", 2},   {"shape", {3}},          {"chunks", {3}},
                      {"dtype", "<i4"},     {"compressor", nullptr}, {"order", "C"},
                      {"filters", nullptr}, {"fill_value", 0}};
  root->objects[".zmetadata"] = Json{
      {"zarr_consolidated_format", 1},
      {"metadata",
       {{".zgroup", {{"zarr_format", 2}}},
        {"m/.zgroup", {{"zarr_format", 2}}},
        {"m/h/.zgroup", {{"zarr_format", 2}}},
        {"m/h/t/.zarray", array}}}}.dump();
  const auto found = server.find("http://h/s.zarr/m/h");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->arrays, ElementsAre(testing::Key("t")));
  EXPECT_EQ(found->arrays.at("t").source, "t/.zarray");
  EXPECT_THAT(server.asked, ElementsAre("http://h/s.zarr/m", "http://h/s.zarr"));
  EXPECT_FALSE(server.find("http://h/s.zarr/other"));
  root->objects[".zmetadata"] = "<html>";
  EXPECT_FALSE(server.find("http://h/s.zarr/m/h")) << "a page in place of a document";
}

}  // namespace consolidated_above_test
}  // namespace batchfs
