#pragma once
// Leaves out of a sweep what no sample reaches, where samples choose over several dimensions
// together: positions along each dimension are left out of the sweep itself.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/scan/sweep.h"
#include "engine/view/rows/reached_elements.h"

namespace batchfs {

/// Thread-safe.
class ReachedMask {
 public:
  explicit ReachedMask(std::shared_ptr<const ReachedElements> elements)
      : elements_(std::move(elements)) {}

  /// Sets the elements of a piece that no sample reaches to NaN, in a copy of its values. Returns
  /// how many they are at each place along the dimensions `kept`, row-major; empty: none are.
  std::vector<std::int64_t> blank(const Sweep::Piece& piece, const std::vector<std::size_t>& kept,
                                  std::shared_ptr<const Buffer>& values) const;

 private:
  /// Elements of a piece along the dimensions of `elements_`, row-major.
  struct Bits {
    std::vector<bool> reached;
    bool are_all = false;
  };
  using Place = std::vector<std::int64_t>;
  std::shared_ptr<const Bits> bits_of(const Sweep::Piece& piece) const;

  const std::shared_ptr<const ReachedElements> elements_;
  mutable std::mutex mutex_;  // guards the fields below; no other lock is taken with it
  /// Pieces that differ along other dimensions have the same bits. Oldest first.
  mutable std::map<Place, std::shared_ptr<const Bits>> known_;
  mutable std::deque<Place> oldest_;
  mutable std::size_t known_bits_ = 0;
};

}  // namespace batchfs
