#include "engine/view/list/csv_reader.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace batchfs {
namespace csv_reader_test {

/// A file with this text, until the end of the test.
struct TextFile {
  explicit TextFile(const std::string& text) { std::ofstream(path, std::ios::binary) << text; }
  ~TextFile() { std::filesystem::remove(path); }
  std::string path = testing::TempDir() + "csv_reader_test.csv";
};

std::vector<std::vector<std::string>> lines_of(const std::string& text) {
  const TextFile written(text);
  NamedFile file(written.path);
  CsvReader csv(file);
  std::vector<std::vector<std::string>> lines;
  std::vector<std::string_view> cells;
  while (csv.next(cells)) lines.emplace_back(cells.begin(), cells.end());
  return lines;
}

TEST(CsvReader, CellsMayBeQuotedAndHaveSpacesAround) {
  const std::vector<std::vector<std::string>> expected = {
      {"a", "b c", ""}, {"1,5", "say \"x\"", " kept "}, {"", "", "z"}};
  EXPECT_EQ(lines_of("\xef\xbb\xbf a ,b c,\r\n\n\"1,5\", \"say \"\"x\"\"\" ,\" kept \"\n,,z"),
            expected);
}

TEST(CsvReader, LinesGoAcrossTheBordersOfBlocks) {
  std::string text;
  for (int i = 0; i < 400'000; ++i) text += std::to_string(i) + ",x\n";
  ASSERT_GT(text.size(), 3U << 20);
  const auto lines = lines_of(text);
  ASSERT_EQ(lines.size(), 400'000U);
  for (int i = 0; i < 400'000; ++i)
    ASSERT_EQ(lines[static_cast<std::size_t>(i)][0], std::to_string(i));
}

TEST(CsvReader, AMistakeNamesItsLine) {
  try {
    lines_of("a\n\n\"b\n");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.why(), "line 3: a cell begins with a quote and does not end with one");
  }
}

}  // namespace csv_reader_test
}  // namespace batchfs
