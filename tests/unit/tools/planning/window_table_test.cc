#include "tools/planning/window_table.h"

#include <cstring>

#include <gtest/gtest.h>

#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace window_table_test {

struct Table {
  std::string header;
  std::vector<std::int64_t> values;
};

Table table_of(const std::string& json, std::int64_t epoch) {
  MemoryData data;
  data.declare("v", "<f4", {"time", "x"}, {10, 8}, {5, 8});
  std::string bytes;
  write_window_table(*parse_view(data.dataset(), json), epoch,
                     [&](std::span<const std::byte> part) {
                       bytes.append(reinterpret_cast<const char*>(part.data()), part.size());
                     });
  Table table{bytes.substr(0, bytes.find('\n') + 1), {}};
  table.values.resize((bytes.size() - table.header.size()) / 8);
  std::memcpy(table.values.data(), bytes.data() + table.header.size(), table.values.size() * 8);
  return table;
}

TEST(WindowTable, HasARowForEverySample) {
  const Table table =
      table_of(R"({"window": {"time": {"size": 4, "stride": 6}, "x": 4}, "batch": 3})", 0);
  EXPECT_NE(table.header.find("'descr': '<i8'"), std::string::npos);
  EXPECT_NE(table.header.find("(4, 4)"), std::string::npos);
  EXPECT_EQ(table.header.size() % 64, 0);
  EXPECT_EQ(table.values, (std::vector<std::int64_t>{0, 0, 0, 0,     //
                                                     0, 1, 0, 4,     //
                                                     0, 2, 6, 0,     //
                                                     1, 3, 6, 4}));  // the last batch is short
}

TEST(WindowTable, HasTheRowsOfASingleBatch) {
  const Table table = table_of(R"({"window": {"time": {"size": 5}}, "batch": 4})", 0);
  EXPECT_NE(table.header.find("(2, 3)"), std::string::npos) << table.header;
  EXPECT_EQ(table.values, (std::vector<std::int64_t>{0, 0, 0, 0, 1, 5}));
}

TEST(WindowTable, IsInTheOrderOfTheEpoch) {
  const std::string json = R"({"window": {"time": 1}, "batch": 4,
                              "order": {"shuffle": "global", "seed": 2}})";
  const Table first = table_of(json, 0), second = table_of(json, 1);
  ASSERT_EQ(first.values.size(), 30);
  EXPECT_NE(first.values, second.values);
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < 30; i += 3) {
    EXPECT_EQ(first.values[i], static_cast<std::int64_t>(i / 3) / 4);
    EXPECT_EQ(first.values[i + 1], first.values[i + 2]);  // one window a step
    sum += first.values[i + 1];
  }
  EXPECT_EQ(sum, 45);
}

TEST(WindowTable, LeavesOutWhatTheRemainderDrops) {
  EXPECT_EQ(table_of(R"({"window": {"time": 1}, "batch": {"size": 4, "remainder": "drop"}})", 0)
                .values.size(),
            8 * 3);
}

}  // namespace window_table_test
}  // namespace batchfs
