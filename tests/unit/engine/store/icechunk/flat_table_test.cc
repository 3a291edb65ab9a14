#include "engine/store/icechunk/flat_table.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/store/icechunk/icechunk_files.h"

namespace batchfs {
namespace flat_table_test {

using icechunk::FlatTable;

std::string example() {
  return FlatBuilder::file({{0, flat_number<std::uint32_t>(7)},
                            {1, flat_text("text")},
                            {2, flat_vector(u32s({1, 2, 3}), 4)},
                            {4, flat_tables({{{0, flat_number<std::uint8_t>(1)}}, {}})},
                            {5, flat_texts({"a", "bc"})},
                            {6, flat_struct(raw_id('x'))}});
}

/// Reads all of it.
void read(const std::string& buffer) {
  const FlatTable root = FlatTable::root(bytes_of(buffer), "Ichk");
  root.number<std::uint32_t>(0, 0);
  root.text(1);
  root.vector(2, 4);
  const icechunk::FlatTables tables = root.tables(4);
  for (std::uint32_t i = 0; i < tables.size(); ++i) tables[i].number<std::uint8_t>(0, 0);
  root.texts(5);
  root.structure(6, 12);
}

TEST(FlatTable, ReadsWhatIsThere) {
  const std::string buffer = example();
  const FlatTable root = FlatTable::root(bytes_of(buffer), "Ichk");
  EXPECT_EQ(root.number<std::uint32_t>(0, 0), 7u);
  EXPECT_EQ(root.text(1), "text");
  EXPECT_EQ(root.vector(2, 4).count, 3u);
  EXPECT_FALSE(root.has(3));
  EXPECT_EQ(root.number<std::uint32_t>(3, 9), 9u);
  EXPECT_EQ(root.tables(4).size(), 2u);
  EXPECT_EQ(root.tables(4)[1].number<std::uint8_t>(0, 5), 5);
  EXPECT_EQ(root.texts(5), (std::vector<std::string_view>{"a", "bc"}));
  EXPECT_EQ(root.structure(6, 12).size(), 12u);
  EXPECT_EQ(root.number<std::uint32_t>(1000, 3), 3u);
  EXPECT_THROW(root.tables(4)[2], Error);
  EXPECT_THROW(root.vector(2, 4).at(3), Error);
  EXPECT_THROW(root.table(3, "nothing there"), Error);
  EXPECT_THROW(FlatTable::root(bytes_of(buffer), "ABCD"), Error);
}

TEST(FlatTable, NeverLeavesTheBufferWhereverItIsCutOrFlipped) {
  const std::string whole = example();
  std::size_t refused = 0;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    // A separate copy, so that a sanitizer detects a read past its end.
    const std::string cut(whole.data(), size);
    try {
      read(cut);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::corrupt);
      ++refused;
    }
  }
  EXPECT_GT(refused, whole.size() / 2);
  for (std::size_t i = 0; i < whole.size(); ++i)
    for (int value : {0, 1, 0x7f, 0x80, 0xff}) {
      std::string changed = whole;
      changed[i] = static_cast<char>(value);
      try {
        read(changed);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::corrupt);
      }
    }
}

}  // namespace flat_table_test
}  // namespace batchfs
