#include "engine/view/split/owners.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "engine/base/counted.h"
#include "engine/view/order/order.h"

namespace batchfs {

namespace {

/// Along one dimension each position may be a cell; along several, boxes of cells are looked at one
/// by one.
constexpr std::int64_t kMaxCells = INT64_C(1) << 26, kMaxBoxes = INT64_C(1) << 24;
constexpr std::uint64_t kStream = 3;  // of permute()

/// Calls `visit` with the number along each axis, row-major.
template <class Visit>
void for_each_cell(const std::vector<std::int64_t>& shape, Visit&& visit) {
  std::vector<std::int64_t> at(shape.size());
  for (std::size_t number = 0;; ++number) {
    visit(number, at);
    std::size_t d = shape.size();
    while (d > 0 && at[d - 1] + 1 == shape[d - 1]) at[--d] = 0;
    if (d == 0) return;
    ++at[d - 1];
  }
}

/// Finds the owners of cells from regions, and regions of two parts that share cells.
class RegionOwners {
 public:
  RegionOwners(const RestrictedView& view, const SplitSpec& split,
               const std::vector<SplitAxis>& axes)
      : view_(view), axes_(axes), rest_(SplitOwners::kNone) {
    for (std::size_t p = 0; p < split.parts.size(); ++p) {
      if (split.parts[p].rest) rest_ = static_cast<std::uint8_t>(p);
      for (const SplitSpec::Region& region : split.parts[p].regions) {
        regions_.push_back(&region);
        parts_.push_back(static_cast<std::uint8_t>(p));
      }
    }
  }

  std::uint8_t owner(const std::vector<std::int64_t>& at) {
    std::size_t first = regions_.size();
    for (std::size_t word = 0; word < axes_.front().words; ++word) {
      std::uint64_t bits = ~std::uint64_t{0};
      for (std::size_t a = 0; a < axes_.size(); ++a)
        bits &= axes_[a].regions[static_cast<std::size_t>(at[a]) * axes_[a].words + word];
      for (; bits != 0; bits &= bits - 1) {
        const std::size_t region = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
        if (first == regions_.size())
          first = region;
        else if (parts_[region] != parts_[first])
          overlap(first, region, at);
      }
    }
    return first == regions_.size() ? rest_ : parts_[first];
  }

  void finish() const {
    if (shared_ == 0) return;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: overlaps {}: they share {}, the first at {}", regions_[b_]->path,
                            regions_[a_]->path, counted(shared_, "position"), place_));
  }

 private:
  /// Counts the positions that the first two regions found share.
  void overlap(std::size_t a, std::size_t b, const std::vector<std::int64_t>& at) {
    if (shared_ > 0 && (a != a_ || b != b_)) return;
    std::int64_t positions = 1;
    std::vector<std::string> labels;
    for (std::size_t d = 0; d < axes_.size(); ++d) {
      const std::int64_t first = axes_[d].begins[static_cast<std::size_t>(at[d])];
      positions *= axes_[d].begins[static_cast<std::size_t>(at[d]) + 1] - first;
      if (shared_ == 0)
        place_ += fmt::format("{}{} {}", d == 0 ? "" : ", ", axes_[d].dim,
                              position_text(view_, axes_[d].dim, first));
    }
    shared_ += positions;
    a_ = a, b_ = b;
  }

  const RestrictedView& view_;
  const std::vector<SplitAxis>& axes_;
  std::uint8_t rest_;
  std::vector<const SplitSpec::Region*> regions_;
  std::vector<std::uint8_t> parts_;  // of the regions
  std::int64_t shared_ = 0;
  std::size_t a_ = 0, b_ = 0;
  std::string place_;
};

std::string block_noun(const SplitSpec& split) { return split.groups.empty() ? "block" : "group"; }

/// Draws the owner of each block, numbered row-major.
std::vector<std::uint8_t> draw(const SplitSpec& split, const std::vector<SplitAxis>& axes,
                               const std::vector<std::int64_t>& classes, std::int64_t blocks) {
  std::vector<std::uint8_t> owners(static_cast<std::size_t>(blocks));
  if (split.by_hash) {
    std::vector<double> until;  // cumulative fractions
    for (const SplitSpec::Part& part : split.parts)
      until.push_back((until.empty() ? 0 : until.back()) + part.fraction);
    for_each_cell(classes, [&](std::size_t block, const std::vector<std::int64_t>& at) {
      std::string text;
      for (std::size_t a = 0; a < axes.size(); ++a)
        text += (a == 0 ? "" : ",") + axes[a].texts[static_cast<std::size_t>(at[a])];
      const std::uint64_t number = text_number(split.seed, text);
      if (split.folds > 0) {
        owners[block] = static_cast<std::uint8_t>(number % static_cast<std::uint64_t>(split.folds));
        return;
      }
      const double share = std::ldexp(static_cast<double>(number), -64);
      const auto part = std::upper_bound(until.begin(), until.end() - 1, share);
      owners[block] = static_cast<std::uint8_t>(part - until.begin());
    });
    return owners;
  }
  std::vector<std::int64_t> until;
  if (split.folds == 0) {
    until = share_blocks(split, blocks);
    for (std::size_t p = 0; p < until.size(); ++p)
      if (until[p] == 0)
        throw Error(
            ErrorCode::invalid_argument,
            fmt::format("{}: {} of {} is none; take shorter blocks or a larger fraction",
                        split.parts[p].path, split.parts[p].fraction, counted(blocks, "block")));
    std::partial_sum(until.begin(), until.end(), until.begin());
  }
  const Permutation permute(blocks, split.seed, 0, kStream);
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::int64_t drawn = permute(block);
    owners[static_cast<std::size_t>(block)] = static_cast<std::uint8_t>(
        split.folds > 0 ? drawn % split.folds
                        : std::upper_bound(until.begin(), until.end(), drawn) - until.begin());
  }
  return owners;
}

}  // namespace

std::uint64_t text_number(std::uint64_t seed, const std::string& text) {
  constexpr std::uint64_t kGolden = UINT64_C(0x9e3779b97f4a7c15);
  std::uint64_t number = mix_bits(seed + kGolden);
  for (const char c : text) number = mix_bits(number + static_cast<unsigned char>(c) + kGolden);
  return number;
}

std::vector<std::int64_t> share_blocks(const SplitSpec& split, std::int64_t blocks) {
  std::vector<std::int64_t> counts;
  std::vector<std::pair<double, std::size_t>> remainders;
  std::int64_t left = blocks;
  for (std::size_t p = 0; p < split.parts.size(); ++p) {
    const double exact = split.parts[p].fraction * static_cast<double>(blocks);
    counts.push_back(std::min(static_cast<std::int64_t>(exact), left));
    left -= counts.back();
    remainders.emplace_back(exact - std::floor(exact), p);
  }
  std::stable_sort(remainders.begin(), remainders.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (std::size_t i = 0; left > 0; i = (i + 1) % remainders.size(), --left)
    ++counts[remainders[i].second];
  return counts;
}

SplitOwners find_owners(const RestrictedView& view, const SplitSpec& split,
                        const std::vector<SplitAxis>& axes) {
  SplitOwners owners;
  std::int64_t cells = 1, blocks = 1;
  std::vector<std::int64_t> classes;
  const std::int64_t most = axes.size() > 1 ? kMaxBoxes : kMaxCells + 1;
  for (const SplitAxis& axis : axes) {
    owners.shape.push_back(axis.cells());
    classes.push_back(axis.class_count);
    if (__builtin_mul_overflow(cells, axis.cells() + 1, &cells) || cells > most)
      throw Error(ErrorCode::not_supported,
                  fmt::format("{}: the parts are cut into more than {} pieces; take longer blocks, "
                              "or fewer dimensions",
                              split.path, most));
    blocks *= axis.class_count;
  }
  std::size_t count = 1;
  for (const std::int64_t along : owners.shape) count *= static_cast<std::size_t>(along);
  owners.parts.resize(count);
  if (!split.is_drawn()) {
    RegionOwners regions(view, split, axes);
    for_each_cell(owners.shape, [&](std::size_t cell, const std::vector<std::int64_t>& at) {
      owners.parts[cell] = regions.owner(at);
    });
    regions.finish();
    return owners;
  }
  if (split.folds > blocks)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: {} folds of {}; write at most {}", split.shares_path, split.folds,
                            counted(blocks, block_noun(split)), blocks));
  const std::vector<std::uint8_t> drawn = draw(split, axes, classes, blocks);
  for_each_cell(owners.shape, [&](std::size_t cell, const std::vector<std::int64_t>& at) {
    std::int64_t block = 0;
    for (std::size_t a = 0; a < axes.size(); ++a)
      block = block * axes[a].class_count + axes[a].classes[static_cast<std::size_t>(at[a])];
    owners.parts[cell] = drawn[static_cast<std::size_t>(block)];
  });
  return owners;
}

}  // namespace batchfs
