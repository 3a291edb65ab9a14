#include "engine/zarr/unread_documents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace batchfs {
namespace unread_documents_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::map<std::string, std::string> unread(const char* text) {
  const Json json = Json::parse(text);
  return unread_documents(json.get_ref<const Json::object_t&>());
}

TEST(UnreadDocumentsTest, KeysThatNoReaderAsksForMayMeanThem) {
  EXPECT_THAT(unread(R"({"b/.zarray": 1, "b//.zattrs": 2, "b/./.zattrs": 3, "/c/.zarray": 4})"),
              ElementsAre(Pair("b/.zattrs", HasSubstr("'b//.zattrs'")),
                          Pair("c/.zarray", HasSubstr("'/c/.zarray'"))));
}

TEST(UnreadDocumentsTest, ADocumentWithItsOwnKeyIsNotLost) {
  EXPECT_TRUE(unread(R"({"b/.zattrs": 1, "b//.zattrs": 2})").empty());
  EXPECT_TRUE(unread(R"({"b/.zattrs": 1, "b/c": 2})").empty());
}

}  // namespace unread_documents_test
}  // namespace batchfs
