#include "engine/view/list/sample_starts.h"

#include <gmock/gmock.h>

#include "engine/view/list/sample_list.h"
#include "engine/view/list/weights.h"
#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace sample_starts_test {

/// 3 x 4 windows.
struct Scan : ViewScan {
  std::shared_ptr<const Dataset> dataset =
      MemoryData().declare("v", "<f4", {"y", "x"}, {3, 4}, {3, 4}).dataset();

  Scan() {
    windows = 12;
    grid = {.first = {0, 0}, .counts = {3, 4}, .strides = {1, 1}};
  }

  /// 1 for each window that is a sample.
  std::vector<int> samples() const {
    const StartTable table = sample_starts(*this, *dataset);
    std::vector<std::uint8_t> marks(static_cast<std::size_t>(table.groups(0) * table.groups(1)));
    table.mark({{{0, table.groups(0)}}, {{0, table.groups(1)}}}, marks.data());
    std::vector<int> result(12);
    for (const StartTable::Starts& y : table.starts(0))
      for (const StartTable::Starts& x : table.starts(1))
        for (std::int64_t i = y.first; i < y.end; ++i)
          for (std::int64_t k = x.first; k < x.end; ++k)
            result[static_cast<std::size_t>(i * 4 + k)] =
                marks[static_cast<std::size_t>(y.group * table.groups(1) + x.group)];
    return result;
  }
};

using Ones = std::vector<int>;

TEST(SampleStarts, WithoutRestrictionsAllAre) { EXPECT_EQ(Scan().samples(), Ones(12, 1)); }

TEST(SampleStarts, ThoseOfAnIndexLessThoseOfNoWeight) {
  Scan scan;
  scan.chosen = std::make_shared<const SampleIndex>(std::vector<std::uint64_t>{0b100100010010}, 12);
  EXPECT_EQ(scan.samples(), (Ones{0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1}));
  scan.draws = std::make_shared<const Draws>(std::vector<double>{1, 0, 0.5, 0}, "weights");
  EXPECT_EQ(scan.samples(), (Ones{0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0}));
  scan.chosen = nullptr;
  scan.draws = std::make_shared<const Draws>(
      std::vector<double>{0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0}, "weights");
  EXPECT_EQ(scan.samples(), (Ones{0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0}));
}

TEST(SampleStarts, OfAListTheRows) {
  Scan scan;
  const auto list = std::make_shared<SampleList>(Dims{9, 9});
  for (const auto& [y, x] : {std::pair(2, 8), {0, 0}, {5, 3}, {2, 8}})
    list->codes().push_back(y * list->steps()[0] + x * list->steps()[1]);
  scan.list = list;
  using Starts = std::vector<std::int64_t>;
  scan.grid.keep(0, std::make_shared<const Starts>(Starts{0, 2, 5}));
  scan.grid.keep(1, std::make_shared<const Starts>(Starts{0, 1, 3, 8}));
  EXPECT_EQ(scan.samples(), (Ones{1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0}));
  scan.draws = std::make_shared<const Draws>(std::vector<double>{0, 0, 3, 1}, "weights");
  EXPECT_EQ(scan.samples(), (Ones{0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0}));
}

}  // namespace sample_starts_test
}  // namespace batchfs
