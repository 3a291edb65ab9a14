#include "engine/scan/reached_mask.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace batchfs {

namespace {

constexpr std::size_t kMaxKnownBits = std::size_t{1} << 27;  // 16 MiB

}  // namespace

std::shared_ptr<const ReachedMask::Bits> ReachedMask::bits_of(const Sweep::Piece& piece) const {
  Place place;
  for (const std::size_t d : elements_->dims()) place.push_back(piece.axes[d].first);
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = known_.find(place); found != known_.end()) return found->second;
  }
  std::vector<std::vector<std::int64_t>> indices;
  for (const std::size_t d : elements_->dims()) {
    indices.push_back(piece.axes[d].indices);
    for (std::int64_t& index : indices.back()) index += piece.box.start[d];
  }
  const auto bits = std::make_shared<Bits>();
  bits->reached = elements_->at(indices);
  bits->are_all =
      std::find(bits->reached.begin(), bits->reached.end(), false) == bits->reached.end();
  const std::lock_guard lock(mutex_);
  if (!known_.emplace(place, bits).second) return bits;
  known_bits_ += bits->reached.size();
  oldest_.push_back(std::move(place));
  while (known_bits_ > kMaxKnownBits && oldest_.size() > 1) {
    const auto oldest = known_.find(oldest_.front());
    known_bits_ -= oldest->second->reached.size();
    known_.erase(oldest);
    oldest_.pop_front();
  }
  return bits;
}

std::vector<std::int64_t> ReachedMask::blank(const Sweep::Piece& piece,
                                             const std::vector<std::size_t>& kept,
                                             std::shared_ptr<const Buffer>& values) const {
  const std::shared_ptr<const Bits> bits = bits_of(piece);
  if (bits->are_all) return {};
  const auto copy = std::make_shared<Buffer>(values->size());
  std::memcpy(copy->data(), values->data(), values->size());
  auto* const elements = reinterpret_cast<double*>(copy->data());
  const std::vector<std::size_t>& dims = elements_->dims();
  const Dims strides = c_strides(piece.box.shape, 1);
  const auto is_in = [](const std::vector<std::size_t>& list, std::size_t d) {
    return std::find(list.begin(), list.end(), d) != list.end();
  };
  std::int64_t entries = 1;
  for (const std::size_t d : kept)
    entries *= static_cast<std::int64_t>(piece.axes[d].indices.size());
  std::vector<std::int64_t> blanked(static_cast<std::size_t>(entries));
  const auto descend = [&](auto&& self, std::size_t d, std::size_t at, std::size_t entry,
                           std::int64_t element) -> void {
    if ((d == strides.size() || d > dims.back()) && bits->reached[at]) return;
    if (d == strides.size()) {
      elements[element] = std::numeric_limits<double>::quiet_NaN();
      ++blanked[entry];
      return;
    }
    const std::vector<std::int64_t>& indices = piece.axes[d].indices;
    const bool in_dims = is_in(dims, d), in_kept = is_in(kept, d);
    for (std::size_t i = 0; i < indices.size(); ++i)
      self(self, d + 1, in_dims ? at * indices.size() + i : at,
           in_kept ? entry * indices.size() + i : entry, element + indices[i] * strides[d]);
  };
  descend(descend, 0, 0, 0, 0);
  values = copy;
  return blanked;
}

}  // namespace batchfs
