#include "engine/zarr/document_reader.h"

#include <gtest/gtest.h>

#include "engine/base/limits.h"
#include "tests/unit/engine/store/memory_store.h"

namespace batchfs {
namespace document_reader_test {

struct Documents : testing::Test {
  MemoryStore store;
  MetadataMemory memory{std::uint64_t{64} << 20};
};

TEST_F(Documents, AreReadOrMissing) {
  store.set("a", R"({"x": 1})");
  DocumentReader reader(store, memory);
  EXPECT_EQ(reader.document("a"), Json::parse(R"({"x": 1})"));
  EXPECT_EQ(reader.document("b"), std::nullopt);
}

TEST_F(Documents, ThatWereAskedForAheadAreTheSame) {
  store.set("a", "1");
  DocumentReader reader(store, memory);
  reader.ask_ahead("a");
  reader.ask_ahead("never wanted");
  EXPECT_EQ(reader.document("a"), Json(1));
  EXPECT_EQ(reader.document("a"), Json(1));
}

TEST_F(Documents, FirstBytesThatWereAskedForAheadAreNoDocument) {
  store.set("a", "ICE is no JSON");
  DocumentReader reader(store, memory);
  const std::string before = reader.digest();
  reader.ask_head_ahead("a", 3);
  reader.ask_head_ahead("b", 3);
  const auto answer = reader.answer("a");
  ASSERT_TRUE(answer);
  const Buffer& head = *std::get<std::optional<Buffer>>(*answer);
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(head.data()), head.size()), "ICE");
  EXPECT_EQ(std::get<std::optional<Buffer>>(*reader.answer("b")), std::nullopt);
  EXPECT_FALSE(reader.answer("a")) << "once";
  EXPECT_FALSE(reader.answer("never asked for"));
  EXPECT_EQ(reader.digest(), before);
}

/// A server that answers with an error for missing objects.
class Refusing final : public Store {
 public:
  explicit Refusing(ErrorCode code) : code_(code) {}
  std::string url() const override { return "refusing"; }
  std::optional<Buffer> read(const std::string& key, ByteRange) override {
    throw Error(code_, "refused", key);
  }
  std::optional<PartRead> read_into(const std::string& key, std::uint64_t,
                                    std::span<std::byte>) override {
    throw Error(code_, "refused", key);
  }
  std::optional<std::uint64_t> size(const std::string&) override { return std::nullopt; }
  std::vector<Entry> list(const std::string&) override { return {}; }

 private:
  const ErrorCode code_;
};

TEST_F(Documents, ARefusalIsNoErrorWhereADocumentIsProbed) {
  for (const ErrorCode code : {ErrorCode::access_denied, ErrorCode::corrupt}) {
    Refusing refusing(code);
    DocumentReader reader(refusing, memory);
    EXPECT_FALSE(reader.refusal());
    EXPECT_EQ(reader.probe("a"), std::nullopt);
    EXPECT_EQ(reader.probe("b"), std::nullopt);
    ASSERT_TRUE(reader.refusal());
    EXPECT_EQ(reader.refusal()->code(), code);
    EXPECT_EQ(reader.refusal()->where(), "a") << "the first";
    reader.ask_head_ahead("c", 3);
    EXPECT_TRUE(std::holds_alternative<std::exception_ptr>(*reader.answer("c")));
    EXPECT_THROW(reader.document("a"), Error);
  }
  Refusing broken(ErrorCode::io);
  DocumentReader reader(broken, memory);
  EXPECT_THROW(reader.probe("a"), Error);
  EXPECT_FALSE(reader.refusal());
}

TEST_F(Documents, LongerThanMemoryAreAnError) {
  store.set("long", std::string(1000, ' ') + "1");
  MetadataMemory little(100);
  DocumentReader reader(store, little);
  try {
    reader.document("long");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::no_memory);
  }
}

TEST_F(Documents, TheDigestIsOfKeysAndBytes) {
  const auto digest = [this](const char* key, const char* text) {
    store.set(key, text);
    DocumentReader reader(store, memory);
    reader.document(key);
    return reader.digest();
  };
  const std::string first = digest("a", "1");
  EXPECT_EQ(first.size(), 32u);
  EXPECT_EQ(digest("a", "1"), first);
  EXPECT_NE(digest("a", "2"), first);
  EXPECT_NE(digest("b", "1"), first);
  EXPECT_NE(digest("a", "1 "), first) << "as stored, not as parsed";
}

}  // namespace document_reader_test
}  // namespace batchfs
