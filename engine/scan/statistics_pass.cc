#include "engine/scan/statistics_pass.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

namespace batchfs {

namespace {

/// Limit of the sums that a run holds: beyond it, leaves are longer.
constexpr std::int64_t kMaxHeld = std::int64_t{1} << 24;

bool is_kept(const std::vector<std::string>& per, const std::string& dim) {
  return std::find(per.begin(), per.end(), dim) != per.end();
}

std::size_t axis_of_tendency(const std::vector<std::string>& dims,
                             const std::vector<std::string>& per, const std::string& tendency) {
  const auto it = std::find(dims.begin(), dims.end(), tendency);
  if (tendency.empty() || it == dims.end() || is_kept(per, tendency)) return Sweep::kNone;
  return static_cast<std::size_t>(it - dims.begin());
}

/// Places in `indices`, which are ascending; -1: not there, since no sample reaches the position.
std::vector<std::int64_t> ranks_of(const Positions& positions,
                                   const std::vector<std::int64_t>& indices) {
  std::vector<std::int64_t> ranks;
  for (std::int64_t i = 0; i < positions.size(); ++i) {
    const auto found = std::lower_bound(indices.begin(), indices.end(), positions[i]);
    const bool is_read = found != indices.end() && *found == positions[i];
    ranks.push_back(is_read ? found - indices.begin() : -1);
  }
  return ranks;
}

const double* numbers(const std::shared_ptr<const Buffer>& values) {
  return reinterpret_cast<const double*>(values->data());
}

/// In elements.
Dims strides(const Sweep::Piece& piece) { return c_strides(piece.box.shape, 1); }

MergedMoments moments_of(const std::vector<Offsets>& axes, const double* values,
                         const double* before) {
  TwoPassMoments result;
  for_each_block(axes, values, before, [&](std::span<double> block) { result.add(block); });
  result.next_pass();
  for_each_block(axes, values, before, [&](std::span<double> block) { result.add(block); });
  return result.merged();
}

/// The moments of values at `axes` less those at the corresponding places of `other_axes`.
MergedMoments difference_moments(const std::vector<Offsets>& axes, const double* values,
                                 const std::vector<Offsets>& other_axes, const double* other) {
  if (axes == other_axes) return moments_of(axes, values, other);
  std::vector<double> subtract;
  for_each_block(other_axes, other, nullptr, [&](std::span<double> block) {
    subtract.insert(subtract.end(), block.begin(), block.end());
  });
  TwoPassMoments result;
  for (int pass = 0; pass < 2; ++pass) {
    if (pass == 1) result.next_pass();
    const double* from = subtract.data();
    for_each_block(axes, values, nullptr, [&](std::span<double> block) {
      for (double& value : block) value -= *from++;
      result.add(block);
    });
  }
  return result.merged();
}

}  // namespace

VariablePass::VariablePass(const SweptChannel& channel, const std::vector<std::string>& per,
                           const std::string& tendency, bool quantiles)
    : mask_(channel.mask),
      reached_(channel.reached),
      tendency_axis_(axis_of_tendency(channel.dims, per, tendency)),
      sweep_(channel.source, pointers(reached_), tendency_axis_),
      chunk_bytes_(channel.source->chunk_bytes()) {
  form_.name = channel.name;
  form_.log_scale = channel.log_scale;
  if (tendency_axis_ != Sweep::kNone) {
    form_.tendency_dim = tendency;
    find_jumps(channel.selected[tendency_axis_]);
  }
  std::int64_t entries = 1;
  for (std::size_t d = 0; d < channel.dims.size(); ++d) {
    if (!is_kept(per, channel.dims[d])) continue;
    const Positions& positions = channel.selected[d];
    if (positions.drops_dim()) continue;
    kept_.push_back(d);
    form_.dims.push_back(channel.dims[d]);
    form_.distinct.push_back(static_cast<std::int64_t>(sweep_.indices(d).size()));
    if (__builtin_mul_overflow(entries, form_.distinct.back(), &entries) ||
        entries > StatisticsForm::kMaxEntries)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("'{}' would have more than {} numbers; keep fewer dimensions",
                              channel.name, StatisticsForm::kMaxEntries));
    form_.ranks.push_back(ranks_of(positions, sweep_.indices(d)));
    if (element_count(form_.shape()) > StatisticsForm::kMaxEntries)
      throw Error(ErrorCode::invalid_argument, "the selection repeats too many positions",
                  channel.name);
  }
  if (quantiles) check_quantiles(entries);
  const std::int64_t max_leaves = std::clamp<std::int64_t>(
      kMaxHeld / std::max<std::int64_t>(1, entries), 1, MomentsTree::kMaxLeaves);
  leaf_pieces_ = std::max<std::int64_t>(1, (sweep_.pieces() - 1) / max_leaves + 1);
  form_.leaves = (sweep_.pieces() + leaf_pieces_ - 1) / leaf_pieces_;
}

void VariablePass::check_quantiles(std::int64_t entries) {
  if (entries > StatisticsForm::kMaxQuantiles ||
      element_count(form_.shape()) > StatisticsForm::kMaxQuantiles)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{}' would have quantiles of more than {} positions; keep fewer "
                            "dimensions, or leave --quantiles out",
                            form_.name, StatisticsForm::kMaxQuantiles));
  form_.buckets =
      std::min<std::int64_t>(QuantileSketch::kMaxBuckets,
                             StatisticsForm::kAllBuckets / std::max<std::int64_t>(1, entries));
}

std::int64_t VariablePass::pieces(std::int64_t first, std::int64_t end) const {
  return first >= end ? 0 : std::min(end * leaf_pieces_, sweep_.pieces()) - first * leaf_pieces_;
}

std::uint64_t VariablePass::leaf_bytes() const {
  return std::max<std::uint64_t>(1, chunk_bytes_) * static_cast<std::uint64_t>(leaf_pieces_);
}

VariableSums VariablePass::read(Engine& engine, std::int64_t first, std::int64_t end,
                                const Sweep::Progress& progress) {
  {
    const std::lock_guard lock(mutex_);
    first_ = begin_ = first * leaf_pieces_;
    end_ = first_ + pieces(first, end);
    if (tendency_axis_ != Sweep::kNone && first_ % sweep_.run() != 0) --begin_;
    next_ = begin_;
    const auto entries = static_cast<std::size_t>(form_.entries());
    slots_.clear();
    for (Leaf* leaf : {&values_, &tendencies_}) *leaf = {};
    values_.sums.resize(entries);
    values_.is_touched.resize(entries);
    if (tendency_axis_ != Sweep::kNone) {
      tendencies_.sums.resize(entries);
      tendencies_.is_touched.resize(entries);
    }
    values_tree_ = {};
    tendencies_tree_ = {};
  }
  {
    const std::lock_guard lock(counting_);
    quantiles_.clear();
    if (form_.buckets > 0)
      quantiles_.assign(static_cast<std::size_t>(form_.entries()),
                        QuantileSketch(static_cast<std::size_t>(form_.buckets)));
  }
  sweep_.read(
      engine,
      [&](std::int64_t number, const Sweep::Piece& piece, std::shared_ptr<const Buffer> values) {
        use(number, piece, std::move(values));
      },
      progress, begin_, end_);
  return {values_tree_.take(), tendencies_tree_.take(), std::move(quantiles_)};
}

/// Thread-safe.
void VariablePass::use(std::int64_t number, const Sweep::Piece& piece,
                       std::shared_ptr<const Buffer> values) {
  Slot mine;
  mine.piece = piece;
  std::vector<std::int64_t> blanked;  // of each entry of the piece
  if (mask_ != nullptr) blanked = mask_->blank(piece, kept_, values);
  std::size_t at = 0;
  mine.values = std::move(values);
  if (form_.buckets > 0) count(number, piece, mine);
  if (number >= first_)
    for_each_entry(piece, [&](std::int64_t entry, const std::vector<Offsets>& axes) {
      mine.parts.push_back({entry, moments_of(axes, numbers(mine.values), nullptr)});
      if (!blanked.empty()) mine.parts.back().moments.forget_nan(blanked[at++]);
      if (tendency_axis_ != Sweep::kNone) add_tendencies(entry, axes, mine);
    });
  bool joins_before = false, joins_behind = false;
  {
    const std::lock_guard lock(mutex_);
    slots_[number] = std::move(mine);
    const auto is_read = [&](std::int64_t n) { return slots_.contains(n); };
    joins_before = continues(number) && is_read(number - 1);
    joins_behind = continues(number + 1) && is_read(number + 1);
  }
  if (joins_before) join(number);
  if (joins_behind) join(number + 1);
  const std::lock_guard lock(mutex_);
  merge();
}

/// Enters the values of a piece into the quantiles.
void VariablePass::count(std::int64_t number, const Sweep::Piece& piece, const Slot& slot) {
  if (number < first_) return;
  std::vector<double> values;
  for_each_entry(piece, [&](std::int64_t entry, const std::vector<Offsets>& axes) {
    values.clear();
    for_each_block(axes, numbers(slot.values), nullptr, [&](std::span<double> block) {
      values.insert(values.end(), block.begin(), block.end());
    });
    int shift = 0;
    {
      const std::lock_guard lock(counting_);
      shift = quantiles_[static_cast<std::size_t>(entry)].shift();
    }
    const std::vector<QuantileSketch::Bucket> buckets = QuantileSketch::count(values, shift);
    const std::lock_guard lock(counting_);
    quantiles_[static_cast<std::size_t>(entry)].add(buckets, shift);
  });
}

/// Marks positions along the tendency's dimension that do not follow the one before them in the
/// selection: no sample reaches some between them.
void VariablePass::find_jumps(const Positions& selected) {
  const std::vector<std::int64_t>& indices = sweep_.indices(tendency_axis_);
  jumps_.assign(indices.size(), false);
  if (selected.is_range()) {
    for (std::size_t i = 1; i < indices.size(); ++i) jumps_[i] = indices[i] != indices[i - 1] + 1;
    return;
  }
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < selected.size(); ++i)
    if (selected[i] != Positions::kNone) all.push_back(selected[i]);
  std::sort(all.begin(), all.end());
  for (std::size_t i = 1; i < indices.size(); ++i)
    jumps_[i] = *std::upper_bound(all.begin(), all.end(), indices[i - 1]) != indices[i];
}

/// Does the sweep skip selected positions right before position `place` of the piece?
bool VariablePass::is_jump(const Sweep::Piece& piece, std::size_t place) const {
  return jumps_[static_cast<std::size_t>(piece.axes[tendency_axis_].first) + place];
}

/// Calls `visit(entry, axes)` for every entry that the piece has elements of.
template <class Visit>
void VariablePass::for_each_entry(const Sweep::Piece& piece, Visit&& visit) const {
  const Dims stride = strides(piece);
  std::vector<Offsets> axes(piece.axes.size());
  for (std::size_t d = 0; d < axes.size(); ++d)
    for (std::int64_t index : piece.axes[d].indices) axes[d].push_back(index * stride[d]);
  std::vector<std::size_t> at(kept_.size());
  std::vector<Offsets> all;
  for (std::size_t k : kept_) all.push_back(axes[k]);
  for (;;) {
    std::int64_t entry = 0;
    for (std::size_t k = 0; k < kept_.size(); ++k) {
      const std::size_t d = kept_[k];
      entry = entry * form_.distinct[k] + piece.axes[d].first + static_cast<std::int64_t>(at[k]);
      axes[d] = {all[k][at[k]]};
    }
    visit(entry, axes);
    std::size_t k = kept_.size();
    while (k > 0 && at[k - 1] + 1 == all[k - 1].size()) at[--k] = 0;
    if (k == 0) return;
    ++at[k - 1];
  }
}

/// The axes of one step along the tendency's dimension.
std::vector<Offsets> VariablePass::one_step(std::vector<Offsets> axes) const {
  axes[tendency_axis_] = {0};
  return axes;
}

/// Inside the piece.
void VariablePass::add_tendencies(std::int64_t entry, std::vector<Offsets> axes, Slot& slot) const {
  const Offsets steps = axes[tendency_axis_];
  if (steps.size() < 2) return;
  const double* const values = numbers(slot.values);
  const std::int64_t stride = strides(slot.piece)[tendency_axis_];
  if (steps.back() - steps.front() == stride * static_cast<std::int64_t>(steps.size() - 1)) {
    axes[tendency_axis_].pop_back();
    slot.tendencies.push_back({entry, moments_of(axes, values + stride, values)});
    return;
  }
  axes[tendency_axis_] = {0};
  for (std::size_t i = 1; i < steps.size(); ++i)
    if (!is_jump(slot.piece, i))
      slot.tendencies.push_back(
          {entry, moments_of(axes, values + steps[i], values + steps[i - 1])});
}

/// Does this piece, and the one before it, belong to one run along the tendency's dimension, and
/// are both read?
bool VariablePass::continues(std::int64_t number) const {
  return tendency_axis_ != Sweep::kNone && number > begin_ && number < end_ &&
         number % sweep_.run() != 0;
}

/// The tendencies from the last step of the piece before to the first of this one.
void VariablePass::join(std::int64_t number) {
  const Slot *before, *mine;
  {
    const std::lock_guard lock(mutex_);
    before = &slots_.at(number - 1);
    mine = &slots_.at(number);
  }
  const auto last =
      before->piece.axes[tendency_axis_].indices.back() * strides(before->piece)[tendency_axis_];
  const auto first =
      mine->piece.axes[tendency_axis_].indices.front() * strides(mine->piece)[tendency_axis_];
  // Pieces differ in their length along this dimension only, but with it in their strides.
  std::vector<std::vector<Offsets>> from;
  for_each_entry(before->piece, [&](std::int64_t, const std::vector<Offsets>& axes) {
    from.push_back(one_step(axes));
  });
  std::vector<Part> border;
  std::size_t i = 0;
  if (!is_jump(mine->piece))
    for_each_entry(mine->piece, [&](std::int64_t entry, const std::vector<Offsets>& axes) {
      border.push_back({entry, difference_moments(one_step(axes), numbers(mine->values) + first,
                                                  from[i++], numbers(before->values) + last)});
    });
  const std::lock_guard lock(mutex_);
  Slot& slot = slots_.at(number);
  slot.border = std::move(border);
  slot.has_border = true;
}

/// Precondition: mutex_ held. Takes the complete pieces, in order.
void VariablePass::merge() {
  for (auto it = slots_.find(next_); it != slots_.end(); it = slots_.find(next_)) {
    Slot& slot = it->second;
    if (continues(next_) && !slot.has_border) return;
    if (next_ >= first_) {
      values_.add(slot.parts);
      tendencies_.add(slot.border);
      tendencies_.add(slot.tendencies);
    }
    slots_.erase(next_ - 1);  // its border is taken
    ++next_;
    if (!continues(next_)) slots_.erase(next_ - 1);
    if (next_ <= first_ || (next_ % leaf_pieces_ != 0 && next_ != end_)) continue;
    const std::int64_t leaf = (next_ - 1) / leaf_pieces_;
    values_tree_.add(values_.take(leaf));
    if (tendency_axis_ != Sweep::kNone) tendencies_tree_.add(tendencies_.take(leaf));
  }
}

void VariablePass::Leaf::add(const std::vector<Part>& parts) {
  for (const Part& part : parts) {
    const auto entry = static_cast<std::size_t>(part.entry);
    if (!is_touched[entry]) {
      is_touched[entry] = true;
      touched.push_back(part.entry);
    }
    sums[entry].add(part.moments);
  }
}

MomentsNode VariablePass::Leaf::take(std::int64_t number) {
  std::sort(touched.begin(), touched.end());
  MomentsNode node{number, 0, std::move(touched), {}};
  for (const std::int64_t entry : node.entries) {
    node.moments.push_back(sums[static_cast<std::size_t>(entry)]);
    sums[static_cast<std::size_t>(entry)] = {};
    is_touched[static_cast<std::size_t>(entry)] = false;
  }
  touched = {};
  return node;
}

}  // namespace batchfs
