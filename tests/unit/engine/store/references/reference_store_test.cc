#include "engine/store/references/reference_store.h"

#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/store/references/reference_json.h"
#include "tests/unit/engine/store/memory_store.h"

namespace batchfs {
namespace reference_store_test {

using testing::HasSubstr;

struct Made {
  std::shared_ptr<MemoryStore> own = std::make_shared<MemoryStore>();
  std::shared_ptr<MemoryStore> outside = std::make_shared<MemoryStore>();
  std::shared_ptr<Store> store;

  explicit Made(bool local = true, std::vector<std::string> allowed = {"s3://bucket/in"}) {
    own->local = outside->local = local;
    own->set("x.nc", "0123456789");
    outside->set("y.nc", "abcdef");
    auto table = references::parse_reference_json(
        R"({".zgroup": "{}", ".zmetadata": "{}", "a/.zarray": "{}", "a/0": ["x.nc", 2, 4],
            "a/1": ["s3://bucket/in/y.nc", 1, 3], "a/2": ["x.nc"], "a/3": "in\u0000line",
            "a/4": ["x.nc", 8, 4], "a/5": ["z.nc", 0, 1], "a/6": ["s3://bucket/out/y.nc", 0, 1],
            "a/7": ["z.nc"], "a/8": ""})",
        1 << 20);
    store = references::open_reference_store(
        "memory/r.json", references::references_of(std::move(table), "0123", "memory/r.json"),
        {own, [this](const std::string&) { return outside; }, {.places = std::move(allowed)}});
  }
};

std::string text_of(const std::optional<Buffer>& bytes) {
  return bytes ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size())
               : "missing";
}

/// By every way to read.
std::string read(Store& store, const std::string& key, ByteRange range = {}) {
  try {
    const std::string text = text_of(store.read(key, range));
    std::promise<ReadOutcome> result;
    store.read_async(key, range, [&result](ReadOutcome o) { result.set_value(std::move(o)); });
    const ReadOutcome outcome = result.get_future().get();
    EXPECT_EQ(text_of(std::get<std::optional<Buffer>>(outcome)), text);
    if (!range.from_end) {
      std::string into(std::min<std::uint64_t>(range.length, 20), '?');
      const auto part = store.read_into(key, range.offset, std::as_writable_bytes(std::span(into)));
      EXPECT_EQ(part.has_value(), text != "missing");
      if (part) {
        EXPECT_EQ(into.substr(0, part->bytes), text);
        EXPECT_EQ(part->object_size, store.size(key));
      }
    }
    return text;
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(ReferenceStore, ReadsWhatKeysStandFor) {
  for (const bool local : {true, false}) {
    Made made(local);
    Store& store = *made.store;
    EXPECT_FALSE(store.is_local());  // s3:// may be read
    EXPECT_EQ(read(store, ".zgroup"), "{}");
    EXPECT_EQ(read(store, "a/0"), "2345");
    EXPECT_EQ(read(store, "a/1"), "bcd");
    EXPECT_EQ(read(store, "a/2"), "0123456789");
    EXPECT_EQ(read(store, "a/3"), std::string("in\0line", 7));
    EXPECT_EQ(read(store, "a/8"), "");
    EXPECT_EQ(read(store, "a/9"), "missing");
    EXPECT_EQ(read(store, "b/0"), "missing");
    EXPECT_EQ(read(store, ".zmetadata"), "missing");  // hidden
    EXPECT_EQ(read(store, "a/0", {1, 2}), "34");
    EXPECT_EQ(read(store, "a/0", {3, 9}), "5");
    EXPECT_EQ(read(store, "a/0", {9, 9}), "");
    EXPECT_EQ(read(store, "a/0", {0, 3, true}), "345");
    EXPECT_EQ(read(store, "a/2", {0, 3, true}), "789");
    EXPECT_EQ(store.size("a/0"), 4u);
    EXPECT_EQ(store.size("a/2"), 10u);
    EXPECT_EQ(store.size("a/9"), std::nullopt);
    EXPECT_EQ(store.content_id(), "0123");
    EXPECT_EQ(store.list("").size(), 2u);
  }
  EXPECT_TRUE(Made(true, {}).store->is_local());
}

TEST(ReferenceStore, NeverMakesMissingOfAnError) {
  for (const bool local : {true, false}) {
    Made made(local);
    EXPECT_THAT(read(*made.store, "a/4"), HasSubstr("shorter than the reference set says"));
    EXPECT_THAT(read(*made.store, "a/4"), HasSubstr("memory/r.json/a/4"));
    EXPECT_THAT(read(*made.store, "a/5"), HasSubstr("is not there"));
    EXPECT_THAT(read(*made.store, "a/6"), HasSubstr("--virtual s3://bucket/"));
    EXPECT_THAT(read(*made.store, "a/7"), HasSubstr("is not there"));
    EXPECT_THAT(read(*made.store, "../a"), HasSubstr("not a usable key"));
    EXPECT_THAT(read(*made.store, "a/0", {0, UINT64_MAX, false, 3}), HasSubstr("at most 3 B"));
    std::byte one[1];
    EXPECT_THROW(made.store->read_into("a/4", 3, one), Error);
    EXPECT_THROW(made.store->read_into("a/5", 0, one), Error);
    EXPECT_THROW(made.store->size("a/7"), Error);
  }
}

}  // namespace reference_store_test
}  // namespace batchfs
