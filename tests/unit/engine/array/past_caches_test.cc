#include "engine/array/past_caches.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "engine/array/array.h"
#include "engine/store/object_versions.h"
#include "tests/unit/engine/codec/damage.h"
#include "tests/unit/engine/store/memory_store.h"

namespace batchfs {
namespace past_caches_test {

/// Reads come from a cache that truncates every object, or changes its bytes; reads with kNoVersion
/// get the stored bytes.
class CachedStore final : public MemoryStore {
 public:
  CachedStore() { local = false; }

  std::optional<Buffer> read(const std::string& key, ByteRange range) override {
    return lied(MemoryStore::read(key, range), false);
  }
  void read_async(const std::string& key, ByteRange range, ReadDone done) override {
    done(read(key, range));
  }
  void read_version_async(const std::string& key, ByteRange range, const std::string& known,
                          VersionedDone done) override {
    const bool is_honest = known == kNoVersion;
    past_caches += is_honest;
    VersionedRead outcome;
    outcome.bytes = lied(MemoryStore::read(key, range), is_honest);
    done(std::move(outcome));
  }

  std::size_t shorter = 0;
  bool changes = false;
  bool is_damaged = false;  // also in the store itself
  int past_caches = 0;

 private:
  std::optional<Buffer> lied(std::optional<Buffer> bytes, bool is_honest) const {
    if (!bytes || (is_honest && !is_damaged)) return bytes;
    bytes->truncate(bytes->size() - std::min(shorter, bytes->size()));
    if (changes && bytes->size() > 0) bytes->data()[0] ^= std::byte{0xff};
    return bytes;
  }
};

constexpr std::int64_t kElements = 1000;

/// One chunk of zlib, with a fill value of -1.
std::shared_ptr<const ArrayMetadata> metadata() {
  const Json zarray = {{"zarr_format", 2},
                       {"shape", {kElements}},
                       {"chunks", {kElements}},
                       {"dtype", "<i4"},
                       {"compressor", {{"id", "zlib"}, {"level", 1}}},
                       {"filters", nullptr},
                       {"fill_value", -1},
                       {"order", "C"}};
  return std::make_shared<const ArrayMetadata>(
      parse_array_v2("a", zarray, Json::object(), "a/.zarray"));
}

std::vector<std::int32_t> values() {
  std::vector<std::int32_t> all(kElements);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int32_t>(i * i);
  return all;
}

class PastCaches : public testing::Test {
 protected:
  PastCaches() {
    const std::vector<std::int32_t> all = values();
    uLongf size = compressBound(kElements * 4);
    Bytes stored(size);
    compress(reinterpret_cast<Bytef*>(stored.data()), &size,
             reinterpret_cast<const Bytef*>(all.data()), kElements * 4);
    stored.resize(size);
    store->set("a/0", stored);
  }
  std::vector<std::int32_t> read() const {
    const Array array(store, metadata());
    std::vector<std::int32_t> out(kElements);
    array.read(whole_box(array.shape()), reinterpret_cast<std::byte*>(out.data()));
    return out;
  }
  ErrorCode error() const {
    try {
      read();
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::internal;
  }

  const std::shared_ptr<CachedStore> store = std::make_shared<CachedStore>();
};

TEST_F(PastCaches, AGoodChunkIsReadOnce) {
  EXPECT_EQ(read(), values());
  EXPECT_EQ(store->past_caches, 0);
}

TEST_F(PastCaches, AShortOrChangedChunkIsReadOnceMore) {
  store->shorter = 7;
  EXPECT_EQ(read(), values());
  EXPECT_EQ(store->past_caches, 1);
  store->shorter = 1 << 20;
  EXPECT_EQ(read(), values());
  store->shorter = 0;
  store->changes = true;
  EXPECT_EQ(read(), values());
  EXPECT_EQ(store->past_caches, 3);
}

TEST_F(PastCaches, WhatIsDamagedInTheStoreIsAnErrorAfterOneMoreRead) {
  store->changes = store->is_damaged = true;
  EXPECT_EQ(error(), ErrorCode::corrupt);
  EXPECT_EQ(store->past_caches, 1);
}

TEST_F(PastCaches, ALocalStoreIsReadOnce) {
  store->local = true;
  store->changes = true;
  EXPECT_EQ(error(), ErrorCode::corrupt);
  EXPECT_EQ(store->past_caches, 0);
}

}  // namespace past_caches_test
}  // namespace batchfs
