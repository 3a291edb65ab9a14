#include "engine/store/references/parquet_references.h"

#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/store/memory_store.h"
#include "tests/unit/engine/store/references/parquet_files.h"

namespace batchfs {
namespace parquet_references_test {

using references::References;
using references::Target;
using testing::HasSubstr;

constexpr std::uint64_t kMemory = 1 << 20;

std::string metadata(const std::string& record_size) {
  return R"({"metadata": {".zgroup": {"zarr_format": 2},
             "g/a/.zarray": {"shape": [7, 4], "chunks": [2, 2]}, "g/a/.zattrs": {},
             "s/.zarray": "{\"shape\": [], \"chunks\": []}"}, "record_size": )" +
         record_size + "}";
}

std::string text_of(const Target& target) {
  if (target.kind == Target::Kind::within)
    return std::string(reinterpret_cast<const char*>(target.bytes.data()), target.bytes.size());
  std::string text(target.file);
  if (target.kind == Target::Kind::range)
    text += " " + std::to_string(target.offset) + " " + std::to_string(target.length);
  return text;
}

std::string find(References& set, const std::string& key) {
  std::promise<std::string> result;
  set.find(key, [&result](References::Outcome outcome) {
    if (const auto* error = std::get_if<std::exception_ptr>(&outcome))
      return result.set_value(error_of(*error).what());
    const auto& found = std::get<std::optional<References::Found>>(outcome);
    result.set_value(found ? text_of(found->target) : "missing");
  });
  return result.get_future().get();
}

TEST(ParquetReferences, FindsChunksInFilesOfSoManyRows) {
  for (const bool local : {true, false}) {
    const auto folder = std::make_shared<MemoryStore>();
    folder->local = local;
    folder->set("g/a/refs.0.parq", from_base64(kPyarrow));
    folder->set("g/a/refs.1.parq", from_base64(kPlainV2));
    folder->set("s/refs.0.parq", from_base64(kNullRaw));
    const auto set = references::open_parquet_references(folder, metadata("5"), kMemory);
    ASSERT_NE(set, nullptr);
    EXPECT_TRUE(folder->asked.empty());
    EXPECT_EQ(find(*set, "g/a/0.0"), "a.nc 10 5");
    EXPECT_EQ(find(*set, "g/a/0.1"), "a.nc 20 6");
    EXPECT_EQ(find(*set, "g/a/1.0"), "xyz");
    EXPECT_EQ(find(*set, "g/a/1.1"), "b.nc 30 7");
    EXPECT_EQ(find(*set, "g/a/2.0"), "a.nc");
    EXPECT_EQ(folder->asked["g/a/refs.1.parq"], 0);
    EXPECT_EQ(find(*set, "g/a/2.1"), "a.nc 10 5");
    EXPECT_EQ(find(*set, "g/a/3.1"), "xyz");
    EXPECT_EQ(folder->asked["g/a/refs.0.parq"], 1);
    EXPECT_EQ(find(*set, "s/0"), "a 1 2");
    for (const char* missing : {"g/a/4.0", "g/a/0.2", "g/a/0", "s/1", "t/0", "g/a/x", "g/0.0"})
      EXPECT_EQ(find(*set, missing), "missing") << missing;
    EXPECT_EQ(find(*set, "g/a/.zattrs"), "{}");
    EXPECT_THAT(find(*set, ".zmetadata"), HasSubstr("zarr_consolidated_format"));
    std::vector<std::string> names;
    for (const Store::Entry& entry : set->list("g/a")) names.push_back(entry.name);
    EXPECT_THAT(names, testing::ElementsAre(".zarray", ".zattrs", "0.0", "0.1", "1.0", "1.1", "2.0",
                                            "2.1", "3.0", "3.1"));
  }
}

TEST(ParquetReferences, AFileThatIsNotThereHasNoneAndADamagedOneIsAnError) {
  const auto folder = std::make_shared<MemoryStore>();
  const auto set = references::open_parquet_references(folder, metadata("5"), kMemory);
  EXPECT_EQ(find(*set, "g/a/0.0"), "missing");
  folder->set("g/a/refs.1.parq", "nothing of the kind");
  EXPECT_THAT(find(*set, "g/a/2.1"), HasSubstr("not a Parquet file"));
  EXPECT_THAT(find(*set, "g/a/2.1"), HasSubstr("g/a/refs.1.parq"));
}

TEST(ParquetReferences, AreToldByTheRecordSize) {
  const auto folder = std::make_shared<MemoryStore>();
  const auto open = [&folder](const std::string& text) {
    return references::open_parquet_references(folder, text, kMemory);
  };
  EXPECT_EQ(open(R"({"metadata": {}, "zarr_consolidated_format": 1})"), nullptr);
  EXPECT_EQ(open(R"({"metadata": {"a/.zattrs": {"record_size": 3}}})"), nullptr);
  for (const char* wrong : {"0", "1000000000", "-1", "\"5\""})
    EXPECT_THROW(open(metadata(wrong)), Error) << wrong;
  EXPECT_THROW(open(R"({"record_size": 5})"), Error);
  for (const char* document :
       {R"({"shape": [4]})", R"({"shape": [9000000000000000000, 9], "chunks": [1, 1]})", "true"}) {
    const auto set = open(R"({"metadata": {".zgroup": {}, "a/.zarray": )" + std::string(document) +
                          R"(}, "record_size": 5})");
    ASSERT_NE(set, nullptr);
    EXPECT_THAT(find(*set, "a/.zarray"), HasSubstr("malformed")) << document;
    EXPECT_EQ(find(*set, ".zgroup"), "{}");
    EXPECT_EQ(set->problems().size(), 1u);
  }
}

TEST(ParquetReferences, RowsAreWhatTheColumnsSay) {
  const auto table = references::parse_parquet_records(from_base64(kPyarrow), 5, kMemory);
  EXPECT_EQ(table->references(), 5u);
  EXPECT_EQ(text_of(*table->find("4")), "a.nc");
  EXPECT_THROW(references::parse_parquet_records(from_base64(kPyarrow), 4, kMemory), Error);
}

TEST(ParquetReferences, TheMemoryThatARefusalNamesSuffices) {
  for (const char* file : {kPyarrow, kPlainV2, kNullRaw}) {
    const std::vector<std::byte> bytes = from_base64(file);
    std::uint64_t least = 1;  // bytes
    const auto refusal = [&](std::uint64_t memory) -> std::string {
      try {
        references::parse_parquet_records(bytes, 5, memory);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::no_memory);
        return error.what();
      }
      return "";
    };
    while (!refusal(least).empty()) least += 64;
    EXPECT_GT(least, bytes.size() + 60);
    const std::string why = refusal(least - 64);
    EXPECT_THAT(why, HasSubstr("one file of references gets half of --memory"));
    EXPECT_THAT(why, HasSubstr("give --memory 1M or more"));
    EXPECT_EQ(refusal(512 << 10), "");
  }
}

TEST(ParquetReferences, HoldTheMemoryOfAFileThatIsDecoded) {
  const auto folder = std::make_shared<MemoryStore>();
  const auto held = [&](const std::string& record_size, std::uint64_t memory) {
    return references::open_parquet_references(folder, metadata(record_size), memory)->memory();
  };
  EXPECT_EQ(held("5", kMemory) - held("1", kMemory), 4 * 60u);
  EXPECT_EQ(held("8", kMemory), held("100", kMemory));  // an array of 8 chunks
}

}  // namespace parquet_references_test
}  // namespace batchfs
