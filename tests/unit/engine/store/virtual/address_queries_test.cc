#include "engine/store/virtual/address_queries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace batchfs {
namespace address_queries_test {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(AddressQueries, KeysStandForAddressesAndDoNotHoldTheQuery) {
  AddressQueries queries;
  const std::string key = queries.key("https://host/data", "a/b.nc", "sig=secret");
  EXPECT_THAT(key, AllOf(StartsWith("a/b.nc?query-"), Not(HasSubstr("secret"))));
  EXPECT_EQ(queries.key("https://host/data", "a/b.nc", "sig=secret"), key);
  const auto found = queries.find("https://host/data", key);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->path, "a/b.nc");
  EXPECT_EQ(found->query, "sig=secret");
}

TEST(AddressQueries, OtherQueriesAndOtherStoresHaveOtherFiles) {
  AddressQueries queries;
  const std::string one = queries.key("https://host", "x", "id=1");
  const std::string two = queries.key("https://host", "x", "id=2");
  EXPECT_NE(one, two);
  EXPECT_EQ(queries.find("https://host", one)->query, "id=1");
  EXPECT_EQ(queries.find("https://host", two)->query, "id=2");
  EXPECT_FALSE(queries.find("https://other", one));
}

TEST(AddressQueries, OtherKeysAreNone) {
  AddressQueries queries;
  queries.key("https://host", "x", "id=1");
  for (const char* key : {"", "x", "x?id=1", "x?query-", "x?query-0000000000000000",
                          "x?query-00000000000000000000000000000000"})
    EXPECT_FALSE(queries.find("https://host", key)) << key;
}

TEST(AddressQueries, MemoryIsBoundedAndTheLatestStay) {
  constexpr std::size_t kMemory = 100'000;
  AddressQueries queries(kMemory);
  const std::string query(1000, 's');
  std::string first, last;
  for (int i = 0; i < 1000; ++i) {
    last = queries.key("https://host", "x" + std::to_string(i), query);
    if (i == 0) first = last;
    EXPECT_TRUE(queries.find("https://host", last));
  }
  EXPECT_FALSE(queries.find("https://host", first));
  const std::string again = queries.key("https://host", "x0", query);
  EXPECT_EQ(again, first);
  for (int i = 0; i < 80; ++i) queries.key("https://host", "y" + std::to_string(i), query);
  EXPECT_TRUE(queries.find("https://host", first));
}

}  // namespace address_queries_test
}  // namespace batchfs
