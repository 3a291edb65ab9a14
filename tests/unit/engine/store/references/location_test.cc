#include "engine/store/references/location.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/error.h"

namespace batchfs {
namespace location_test {

using references::absolute_location;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

TEST(Location, IsAbsoluteAndVerbatim) {
  const std::string local = "file:///data/set/", bucket = "s3://bucket/a/b/",
                    web = "https://h:8/x/";
  EXPECT_EQ(absolute_location("s3://b/a%20b c#d?e", local), "s3://b/a%20b c#d?e");
  EXPECT_EQ(absolute_location("GCS://b/a", local), "gs://b/a");
  EXPECT_EQ(absolute_location("s3a://b/a", local), "s3://b/a");
  EXPECT_EQ(absolute_location("/abs/x%41", local), "file:///abs/x%41");
  for (const char* file : {"file:/abs/x", "FILE:///abs/x", "file://localhost/abs/x"}) {
    EXPECT_EQ(absolute_location(file, bucket), "file:///abs/x") << file;
    EXPECT_FALSE(references::is_relative(file));
  }
  EXPECT_EQ(absolute_location("x.nc", local), "file:///data/set/x.nc");
  EXPECT_EQ(absolute_location("./y/../x.nc", local), "file:///data/set/x.nc");
  EXPECT_EQ(absolute_location("../x.nc", local), "file:///data/x.nc");
  EXPECT_EQ(absolute_location("../x.nc", bucket), "s3://bucket/a/x.nc");
  EXPECT_EQ(absolute_location("../../../../x.nc", bucket), "s3://bucket/x.nc");
  EXPECT_EQ(absolute_location("a b?c.nc", web), "https://h:8/x/a%20b%3Fc.nc");
  EXPECT_EQ(absolute_location("https://h/a?sig=b/c%2F", local), "https://h/a?sig=b/c%2F");
}

TEST(Location, RefusesOtherFileSystems) {
  for (const char* file : {"memory://a", "zip://x::s3://b/a", "simplecache::s3://b/a", "data:a",
                           "ftp://h/a?key=secret", "a::b"}) {
    try {
      absolute_location(file, "file:///data/");
      ADD_FAILURE() << file;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::not_supported);
      EXPECT_THAT(error.what(), AllOf(HasSubstr("batchfs does not"), Not(HasSubstr("secret"))))
          << file;
    }
  }
}

TEST(Location, RefusesAFileAndAUrlWithoutItsSlashes) {
  const auto why = [](const char* file) {
    try {
      return absolute_location(file, "file:///data/");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::not_supported);
      return std::string(error.what());
    }
  };
  EXPECT_THAT(why("file:x.nc"), HasSubstr("the chunk lies in 'file:x.nc', which cannot be found"));
  EXPECT_THAT(why("s3:/bucket/x?key=secret"),
              AllOf(HasSubstr("write 's3://bucket/x'"), Not(HasSubstr("secret"))));
}

TEST(Location, FindsFoldersThatFilesShare) {
  references::CommonFolders folders;
  for (const char* file :
       {"s3://b/x/y/1.nc", "s3://b/x/y/2.nc", "s3://b/x/z/1.nc", "gs://c/a/1", "file:///data/one",
        "file:///data/two", "https://h/a/b/c.nc?sig=1/2", "https://h/a/b/d.nc?sig=3/4"})
    folders.add(file);
  EXPECT_THAT(folders.take(), ElementsAre(Pair("", "s3://b/x/"), Pair("", "gs://c/a/"),
                                          Pair("", "file:///data/"), Pair("", "https://h/a/b/")));
  references::CommonFolders nothing;
  nothing.add("file:///a/x");
  nothing.add("file:///b/x");
  EXPECT_TRUE(nothing.take().empty());
}

}  // namespace location_test
}  // namespace batchfs
