#include "engine/store/references/parquet_reader.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/store/references/parquet_files.h"

namespace batchfs {
namespace parquet_reader_test {

using references::ParquetColumn;
using references::ParquetTable;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint64_t kMemory = 1 << 20;
constexpr std::array<std::string_view, 3> kWanted = {"path", "size", "raw"};

ParquetTable read(std::span<const std::byte> file, std::uint64_t rows = 100,
                  std::uint64_t memory = kMemory) {
  Claims claims(memory);
  return references::read_parquet(file, kWanted, rows, claims);
}

std::vector<std::string> texts(const ParquetColumn& column) {
  std::vector<std::string> found;
  for (const std::uint32_t which : column.which)
    found.emplace_back(which == ParquetColumn::kNull ? "null" : column.text(which));
  return found;
}

TEST(ParquetReader, ReadsWhatWritersMake) {
  for (const char* file : {kPyarrow, kPlainV2}) {
    const ParquetTable table = read(from_base64(file));
    EXPECT_EQ(table.rows, 5u);
    ASSERT_EQ(table.columns.size(), 3u);
    EXPECT_THAT(texts(*table.find("path")), ElementsAre("a.nc", "a.nc", "null", "b.nc", "a.nc"));
    EXPECT_THAT(texts(*table.find("raw")), ElementsAre("null", "null", "xyz", "null", "null"));
    EXPECT_THAT(table.find("size")->numbers, ElementsAre(5, 6, 0, 7, 0));
    EXPECT_EQ(table.find("offset"), nullptr);
  }
  const ParquetTable table = read(from_base64(kNullRaw));
  EXPECT_FALSE(table.find("raw")->is_text);
  EXPECT_THAT(texts(*table.find("path")), ElementsAre("a"));
}

TEST(ParquetReader, TheFooterHasTheSizeOfTheColumns) {
  const references::ParquetSize size =
      references::parquet_size(from_base64(kPlainV2), kWanted, 100);
  EXPECT_EQ(size.rows, 5u);
  EXPECT_EQ(size.texts, 58u + 33u);  // with the headers of pages
  EXPECT_EQ(size.numbers, 66u);
  EXPECT_EQ(size.largest, 66u);
  EXPECT_THROW(references::parquet_size(from_base64(kPlainV2), kWanted, 4), Error);
}

std::string refusal(std::span<const std::byte> file, std::uint64_t rows = 100,
                    std::uint64_t memory = kMemory) {
  try {
    read(file, rows, memory);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ParquetReader, RefusesWhatIsDamaged) {
  EXPECT_THAT(refusal({}), HasSubstr("too short"));
  EXPECT_THAT(refusal(std::vector<std::byte>(100)), HasSubstr("not a Parquet file"));
  EXPECT_THAT(refusal(from_base64(kPyarrow), 4), HasSubstr("5 rows, at most 4"));
  EXPECT_THAT(refusal(from_base64(kPyarrow), 100, 50), HasSubstr("--memory"));
  for (const char* file : {kPyarrow, kPlainV2, kNullRaw}) {
    const std::vector<std::byte> whole = from_base64(file);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      EXPECT_NE(refusal(std::span(whole).first(i)), "") << i;
      for (const int bit : {0, 3, 7}) {
        std::vector<std::byte> flipped = whole;
        flipped[i] ^= std::byte{1} << bit;
        refusal(flipped);  // ends
      }
    }
  }
}

}  // namespace parquet_reader_test
}  // namespace batchfs
