#include "engine/store/meant_document.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace meant_document_test {

TEST(MeantDocumentTest, OtherSpellingsMeanTheDocument) {
  for (const char* key :
       {"b//.zattrs", "b/./.zattrs", "/b/.zattrs", "b/.zattrs/", "./b/.zattrs", "a/../b/.zattrs"})
    EXPECT_EQ(meant_document(key), "b/.zattrs") << key;
  EXPECT_EQ(meant_document("//zarr.json"), "zarr.json");
}

TEST(MeantDocumentTest, OtherKeysMeanNone) {
  using namespace std::string_view_literals;
  for (const std::string_view key :
       {"b/.zattrs"sv, ""sv, "/"sv, ".."sv, "b//0"sv, "b//zattrs"sv, "b/.zattrs/x/"sv,
        "../.zgroup"sv, "b/../../c/.zattrs"sv, "b\0//.zattrs"sv})
    EXPECT_EQ(meant_document(key), std::nullopt) << key;
}

}  // namespace meant_document_test
}  // namespace batchfs
