#include "engine/store/virtual/virtual_places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/store/memory_store.h"

namespace batchfs {
namespace virtual_places_test {

using testing::HasSubstr;
using testing::Not;

struct Places {
  explicit Places(std::vector<std::string> allowed, bool checks = true)
      : places(std::make_shared<MemoryStore>(), {.places = std::move(allowed), .checks = checks},
               {.containers = {{"archive", "s3://bucket/archive"}, {"", "gs://other/a/"}}},
               [this](const std::string& url) {
                 opened.push_back(url);
                 return std::make_shared<MemoryStore>();
               }) {}

  /// Opened URLs and the key, or the error.
  std::string find(const std::string& location) {
    try {
      const VirtualPlaces::File file = places.find(location);
      return (opened.empty() ? "" : opened.back()) + " " + file.key;
    } catch (const Error& error) {
      return error.what();
    }
  }

  std::vector<std::string> opened;
  VirtualPlaces places;
};

TEST(VirtualPlaces, AllowsWhatTheUserAllowsAndNothingElse) {
  Places places({"s3://bucket", "https://host/data/", "file:///data/set=file:///copy"});
  EXPECT_EQ(places.find("s3://bucket/a/b%20c.nc"), "s3://bucket/ a/b c.nc");
  EXPECT_EQ(places.find("vcc://archive/x/y.nc"), "s3://bucket/ archive/x/y.nc");
  EXPECT_EQ(places.find("https://host/data/x.nc?sign=1#f"), "https://host/data/ x.nc");
  EXPECT_EQ(places.find("file:///data/set/x"), "/copy x");
  EXPECT_EQ(places.find("file:///data/s%65t/a/../x%20y"), "/copy x y");
  EXPECT_THAT(places.find("s3://bucket-private/x"), HasSubstr("--virtual s3://bucket-private/"));
  EXPECT_THAT(places.find("https://host/other/x"), HasSubstr("--virtual https://host/"));
  EXPECT_THAT(places.find("https://user:secret@elsewhere/x?key=1"),
              AllOf(HasSubstr("--virtual https://elsewhere/"), Not(HasSubstr("secret")),
                    Not(HasSubstr("key=1"))));
  EXPECT_THAT(places.find("gs://other/a/b/c"), HasSubstr("--virtual gs://other/a/"));
  EXPECT_THAT(places.find("file:///data/x.nc"), HasSubstr("--virtual file:///data/"));
  EXPECT_THAT(places.find("vcc://nothing/x"), HasSubstr("the container 'nothing'"));
}

TEST(VirtualPlaces, AFileHasOneNameHoweverItsUrlIsWritten) {
  for (const char* prefix : {"file:/data/", "FILE:///data", "file://localhost/data/", "/data/"}) {
    Places places({prefix});
    for (const char* file : {"file:/data/x", "File:///data/x", "file://LOCALHOST/data/x"})
      EXPECT_EQ(places.find(file), "file:///data/ x") << prefix << " " << file;
  }
  Places places({"S3://bucket/=FILE:/copy"});
  EXPECT_EQ(places.find("s3://bucket/a"), "/copy a");
  EXPECT_EQ(places.find("S3://bucket/a"), "/copy a");
  EXPECT_THAT(places.find("file:data/x"), HasSubstr("which is not a URL"));
  EXPECT_THAT(places.find("s3:/bucket/x"), HasSubstr("which is not a URL"));
}

TEST(VirtualPlaces, RefusesPathsThatLeadElsewhere) {
  Places places({"https://host/data/", "file:///data/"});
  for (const char* path : {"../x", "a/../../x", "%2e%2e/x", "a//b", "", "./x"})
    EXPECT_THAT(places.find(std::string("https://host/data/") + path),
                HasSubstr("batchfs does not read"))
        << path;
  for (const char* path : {"file:///data/../etc/passwd", "file:///data/%2e%2e/etc/passwd"})
    EXPECT_THAT(places.find(path), HasSubstr("--virtual file:///etc/"));
  EXPECT_THAT(places.find(std::string("https://host/data/a\r\nx")), HasSubstr("is not a URL"));
  EXPECT_THAT(places.find("nothing"), HasSubstr("is not a URL"));
  EXPECT_TRUE(places.opened.empty());
}

TEST(VirtualPlaces, QueriesOfWebAddressesAreFoundByKey) {
  const auto queries = std::make_shared<AddressQueries>();
  const auto store = std::make_shared<MemoryStore>();
  const auto open = [&](const std::string&) { return store; };
  const VirtualOptions options{.places = {"https://host/data/", "s3://b/"}};
  VirtualPlaces places(store, options, {.encoded = false, .queries = queries}, open);
  const VirtualPlaces::File file = places.find("https://host/data/a%20b.nc?sig=x%2F/../y#f");
  EXPECT_EQ(file.shown, "https://host/data/a%20b.nc");
  const auto address = queries->find(store->url(), file.key);
  ASSERT_TRUE(address);
  EXPECT_EQ(address->path, "a b.nc");
  EXPECT_EQ(address->query, "sig=x%2F/../y");
  EXPECT_EQ(places.find("https://host/data/a.nc").key, "a.nc");
  EXPECT_EQ(places.find("s3://b/a?c").key, "a?c");
  EXPECT_THROW(places.find("https://host/data/../x?sig=1"), Error);
  VirtualPlaces without(store, options, {.encoded = false}, open);
  EXPECT_THROW(without.find("https://host/data/a.nc?sig=1"), Error);
}

TEST(VirtualPlaces, RefusesWhatIsNoPrefix) {
  for (const char* wrong :
       {"s3://", "*", "s3://*/", "file://", "file:///", "file:/", "file:data", "data", "", "s3:///",
        "s3://bucket/=", "s3:/bucket/", "s3://bucket/=file:x"})
    EXPECT_THROW(Places({wrong}), Error) << wrong;
}

TEST(VirtualPlaces, KnowsWhetherAllIsLocal) {
  EXPECT_TRUE(Places({}).places.are_local());
  EXPECT_TRUE(Places({"s3://bucket/=/copy"}).places.are_local());
  EXPECT_FALSE(Places({"s3://bucket/"}).places.are_local());
}

std::string checked(const VirtualFile& file, const Store::VersionedRead& read, bool checks = true) {
  try {
    Places({}, checks).places.check(file, "s3://b/x", read);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::stale);
    return error.what();
  }
  return "";
}
Store::VersionedRead answer(const std::string& version, std::optional<std::int64_t> modified) {
  Store::VersionedRead read;
  read.version = version;
  read.modified = modified;
  return read;
}

TEST(VirtualPlaces, ComparesTagsAndTimes) {
  const VirtualFile tag{"", "\"abc\"", 0}, bare{"", "abc", 0}, time{"", "", 1000};
  EXPECT_EQ(checked(tag, answer("\"abc\"", 5)), "");
  EXPECT_EQ(checked(bare, answer("\"abc\"", 5)), "");
  EXPECT_THAT(checked(tag, answer("\"abd\"", 5)), HasSubstr("another ETag"));
  EXPECT_THAT(checked(tag, answer("W/\"abc\"", 5)), HasSubstr("another ETag"));
  EXPECT_THAT(checked(tag, answer("", 5)), HasSubstr("no ETag to compare"));
  EXPECT_THAT(checked(tag, answer("modified x", 5)), HasSubstr("no ETag to compare"));
  EXPECT_EQ(checked(time, answer("", 1000)), "");
  EXPECT_EQ(checked(time, answer("", std::nullopt)), "");
  EXPECT_THAT(checked(time, answer("", 1001)), HasSubstr("1970-01-01 00:16:41 UTC"));
  EXPECT_EQ(checked(time, answer("", 1001), false), "");
}

}  // namespace virtual_places_test
}  // namespace batchfs
