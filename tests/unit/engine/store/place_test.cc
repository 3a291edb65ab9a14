#include "engine/store/place.h"

#include <gmock/gmock.h>

#include "engine/base/error.h"

namespace batchfs {
namespace place_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string why(const std::string& text) {
  try {
    return "no error: " + usual_place(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
}

TEST(Place, FilesAreAlsoUrls) {
  for (const char* text :
       {"/data/a.zarr", "file:///data/a.zarr", "file:/data/a.zarr", "FILE:/data/a.zarr",
        "File:///data/a.zarr", "file://localhost/data/a.zarr", "file://LocalHost/data/a.zarr"})
    EXPECT_EQ(usual_place(text), "/data/a.zarr") << text;
  EXPECT_EQ(usual_place("file://a.zarr"), "a.zarr");
  EXPECT_EQ(usual_place("file://a%20b"), "a%20b");
  EXPECT_EQ(usual_place("icechunk+file:/a"), "icechunk+/a");
  EXPECT_EQ(usual_place("reference::FILE:///a.json"), "reference::/a.json");
  EXPECT_EQ(usual_place("file:///odd/s3://x"), "file:///odd/s3://x");
}

TEST(Place, OtherPlacesKeepAllButTheCaseOfTheirScheme) {
  EXPECT_EQ(usual_place("S3://Bucket/A"), "s3://Bucket/A");
  EXPECT_EQ(usual_place("icechunk+HTTPS://h/A?b"), "icechunk+https://h/A?b");
  for (const char* text : {"", "a.zarr", "./file:a", "a b:/c", "1:/a", "c:/a", "s3:bucket", "x:y",
                           "ftp://h/a", "/a:b/c"})
    EXPECT_EQ(usual_place(text), text);
}

TEST(Place, OneWithoutItsSlashesIsRefusedWithTheFormToWrite) {
  EXPECT_THAT(why("file:a.zarr"), HasSubstr("write 'a.zarr', or './file:a.zarr'"));
  EXPECT_THAT(why("FILE:a"), HasSubstr("write 'a'"));
  EXPECT_THAT(why("s3:/bucket/a.zarr"), HasSubstr("write 's3://bucket/a.zarr'"));
  EXPECT_THAT(why("icechunk+GS:/b"), HasSubstr("write 'gs://b'"));
  EXPECT_THAT(why("https:/user:secret@h/a"),
              AllOf(HasSubstr("https://"), Not(HasSubstr("secret"))));
  EXPECT_THAT(why("az:/c/a?sig=secret"), AllOf(HasSubstr("'az://c/a'"), Not(HasSubstr("secret"))));
}

TEST(Place, OfAKind) {
  EXPECT_EQ(split_kind("icechunk+s3://b").kind, "icechunk+");
  EXPECT_EQ(split_kind("icechunk+s3://b").place, "s3://b");
  EXPECT_EQ(split_kind("reference::a").place, "a");
  EXPECT_EQ(split_kind("icechunk").kind, "");
}

}  // namespace place_test
}  // namespace batchfs
