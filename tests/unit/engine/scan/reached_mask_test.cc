#include "engine/scan/reached_mask.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>

#include "engine/view/list/sample_starts.h"
#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace reached_mask_test {

using testing::ElementsAre;
using testing::IsEmpty;

/// y and x of 4; the cells of the diagonal are samples.
struct Diagonal {
  std::shared_ptr<const View> view;
  std::shared_ptr<const ReachedElements> elements;

  Diagonal() {
    std::vector<float> land(16);
    for (std::size_t i = 0; i < 16; i += 5) land[i] = 1;
    view = parse_view(MemoryData()
                          .declare("v", "<f4", {"y", "t", "x"}, {4, 3, 4}, {4, 3, 4})
                          .add<float>("land", "<f4", {"y", "x"}, {4, 4}, land)
                          .dataset(),
                      R"({"variables": ["v"], "window": {"t": 1, "y": 1, "x": 1}, "batch": 1,
                          "samples": {"mask": {"variable": "land"}}})");
    elements =
        reached_by_samples(*view, 0, sample_starts(scan_of(*view), *view->dataset())).elements;
  }
};

/// 1 for each value of the piece that is not NaN.
std::vector<int> kept(const std::shared_ptr<const Buffer>& values) {
  std::vector<int> result;
  const auto* const numbers = reinterpret_cast<const double*>(values->data());
  for (std::size_t i = 0; i < values->size() / sizeof(double); ++i)
    result.push_back(std::isnan(numbers[i]) ? 0 : 1);
  return result;
}

std::shared_ptr<const Buffer> zeros(const Sweep::Piece& piece) {
  auto values =
      std::make_shared<Buffer>(static_cast<std::size_t>(piece.box.elements()) * sizeof(double));
  std::fill_n(reinterpret_cast<double*>(values->data()), piece.box.elements(), 0.0);
  return values;
}

TEST(ReachedMask, BlanksWhatNoSampleReachesInACopy) {
  const Diagonal diagonal;
  const ReachedMask mask(diagonal.elements);
  // y 1 and 2, t 0 and 2, x 0 to 2.
  const Sweep::Piece piece{{{1, 0, 0}, {2, 3, 3}}, {{1, {0, 1}}, {0, {0, 2}}, {0, {0, 1, 2}}}};
  const auto before = zeros(piece);
  auto values = before;
  EXPECT_THAT(mask.blank(piece, {}, values), ElementsAre(8));
  EXPECT_THAT(kept(values), ElementsAre(0, 1, 0, 1, 1, 1, 0, 1, 0, 0, 0, 1, 1, 1, 1, 0, 0, 1));
  EXPECT_EQ(kept(before), std::vector<int>(18, 1));
}

TEST(ReachedMask, CountsAtEachPlaceOfKeptDimensions) {
  const Diagonal diagonal;
  const ReachedMask mask(diagonal.elements);
  const Sweep::Piece piece{{{0, 0, 0}, {4, 1, 2}}, {{0, {0, 1, 2, 3}}, {0, {0}}, {0, {0, 1}}}};
  for (int again = 0; again < 2; ++again) {
    auto values = zeros(piece);
    EXPECT_THAT(mask.blank(piece, {0}, values), ElementsAre(1, 1, 2, 2));
    values = zeros(piece);
    EXPECT_THAT(mask.blank(piece, {0, 2}, values), ElementsAre(0, 1, 1, 0, 1, 1, 1, 1));
  }
}

TEST(ReachedMask, LeavesAPieceThatIsReachedAsItIs) {
  const Diagonal diagonal;
  const ReachedMask mask(diagonal.elements);
  const Sweep::Piece piece{{{2, 0, 2}, {1, 3, 1}}, {{2, {0}}, {0, {0, 1, 2}}, {2, {0}}}};
  const auto before = zeros(piece);
  auto values = before;
  EXPECT_THAT(mask.blank(piece, {}, values), IsEmpty());
  EXPECT_EQ(values, before);
}

}  // namespace reached_mask_test
}  // namespace batchfs
