#include "tools/cli/stores/named_stores.h"

#include <gmock/gmock.h>

#include "engine/base/error.h"

namespace batchfs {
namespace named_stores_test {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> added(const std::string& name, const std::string& url) {
  StoreOptions options;
  add_named_stores(options, name, url);
  std::vector<std::string> result;
  for (const auto& each : options.others) result.push_back(each.name + "=" + each.url);
  for (const auto& [series, names] : options.series)
    result.push_back(series + ": " + std::to_string(names.size()));
  return result;
}
std::string refusal(const std::string& name, const std::string& url) {
  try {
    added(name, url);
  } catch (const Error& error) {
    return error.why();
  }
  return "";
}

TEST(NamedStores, BracesNameSeveral) {
  EXPECT_THAT(added("a", "s3://b/c"), ElementsAre("a=s3://b/c"));
  EXPECT_THAT(added("e", "/y{8..9}.zarr"), ElementsAre("e.8=/y8.zarr", "e.9=/y9.zarr", "e: 2"));
  EXPECT_THAT(added("y{8..9}", "/{}.zarr"), ElementsAre("y8=/8.zarr", "y9=/9.zarr"));
}

TEST(NamedStores, RefusesNamesThatAreNone) {
  EXPECT_THAT(refusal("a/b", "u"), HasSubstr("not a name of a store"));
  EXPECT_THAT(refusal("y{1..2}", "u"), HasSubstr("2 names to one URL"));
  EXPECT_THAT(refusal("e", "{x,x}"), HasSubstr("given twice"));
  EXPECT_THAT(refusal("e", "{x,y/z}"), HasSubstr("'e.y/z' is not a name"));
}

}  // namespace named_stores_test
}  // namespace batchfs
