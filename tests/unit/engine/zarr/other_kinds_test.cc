#include "engine/zarr/other_kinds.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/store/memory_store.h"

namespace batchfs {
namespace other_kinds_test {

TEST(OtherKinds, AreKnownByTheirNames) {
  EXPECT_EQ(kind_by_listing({{"attributes.json", false}}), StoreKind::n5);
  EXPECT_EQ(kind_by_listing({{"snapshots", true}, {"manifests", true}, {"repo", false}}),
            StoreKind::icechunk);
  EXPECT_EQ(kind_by_listing({{"a", true}}), std::nullopt);
}

TEST(OtherKinds, AreLookedForWhereNothingIsListed) {
  for (const auto& [text, kind] :
       {std::pair<const char*, std::optional<StoreKind>>(R"({"n5": "2.0"})", StoreKind::n5),
        {"{}", std::nullopt}}) {
    MemoryStore store;
    store.set("attributes.json", text);
    MetadataMemory memory(1 << 20);
    DocumentReader reader(store, memory);
    EXPECT_EQ(kind_by_probing(store, reader), kind) << text;
  }
}

TEST(OtherKinds, ABrokenRootNamesWhatIsBesideItUnlessItIsAWebPage) {
  const Error broken(ErrorCode::invalid_argument, "why", "zarr.json");
  EXPECT_TRUE(is_broken(broken));
  EXPECT_FALSE(is_broken(Error(ErrorCode::io, "why")));
  MemoryStore store;
  store.set("zarr.json", "{");
  EXPECT_EQ(broken_root(store, broken).why(), "why");
  store.set(".zgroup", "{}");
  EXPECT_THAT(broken_root(store, broken).why(), testing::HasSubstr("is read before .zgroup"));
  store.set("zarr.json", "<!doctype html><p>hello");
  EXPECT_EQ(broken_root(store, broken).why(), "why");
}

TEST(OtherKinds, ABrokenDocumentNamesTheOther) {
  const Error error = broken_beside(Error(ErrorCode::corrupt, "why", "a/zarr.json"), ".zarray");
  EXPECT_EQ(error.code(), ErrorCode::corrupt);
  EXPECT_EQ(error.where(), "a/zarr.json");
  EXPECT_THAT(error.why(), testing::StartsWith("why; zarr.json is read before .zarray"));
}

}  // namespace other_kinds_test
}  // namespace batchfs
