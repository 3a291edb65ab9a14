#include "tools/cli/selected_values.h"

#include <algorithm>

#include "engine/dataset/read_variable.h"

namespace batchfs {

namespace {

/// Positions that lie one after the other in the array, and where they go.
struct Stretch {
  std::int64_t start, count, out;
};

std::vector<Stretch> stretches_of(const Positions& positions, std::int64_t first,
                                  std::int64_t count) {
  if (positions.is_range()) return {{positions[first], count, 0}};
  std::vector<Stretch> stretches;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t position = positions[first + i];
    if (!stretches.empty() && stretches.back().start + stretches.back().count == position) {
      ++stretches.back().count;
    } else {
      stretches.push_back({position, 1, i});
    }
  }
  return stretches;
}

/// Calls `use(start, count, out)` for every combination of one stretch from each dimension.
template <class Use>
void for_each_box(const std::vector<Positions>& positions, const Dims& first, const Dims& count,
                  Use use) {
  std::vector<std::vector<Stretch>> stretches;
  for (std::size_t d = 0; d < positions.size(); ++d) {
    stretches.push_back(stretches_of(positions[d], first[d], count[d]));
  }
  std::vector<std::size_t> at(positions.size());
  for (;;) {
    Dims box_start(at.size()), box_count(at.size()), out(at.size());
    for (std::size_t d = 0; d < at.size(); ++d) {
      const Stretch& stretch = stretches[d][at[d]];
      box_start[d] = stretch.start;
      box_count[d] = stretch.count;
      out[d] = stretch.out;
    }
    use(box_start, box_count, out);
    std::size_t d = at.size();
    while (d > 0 && ++at[d - 1] == stretches[d - 1].size()) at[--d] = 0;
    if (d == 0) return;
  }
}

std::int64_t offset_of(const Dims& index, const Dims& strides) {
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < index.size(); ++d) offset += index[d] * strides[d];
  return offset;
}

}  // namespace

std::vector<std::pair<std::string, std::int64_t>> SelectedValues::dims_of(const Variable& variable,
                                                                          Decode decode) {
  const bool raw = decode == Decode::raw;
  const std::vector<std::string> names = raw ? dimension_names(*variable.metadata) : variable.dims;
  const Dims& shape = raw ? variable.metadata->shape : variable.shape;
  std::vector<std::pair<std::string, std::int64_t>> dims;
  for (std::size_t d = 0; d < shape.size(); ++d) dims.emplace_back(names[d], shape[d]);
  return dims;
}

SelectedValues::SelectedValues(const Variable& variable, Decode decode,
                               std::vector<Positions> positions)
    : variable_(variable), positions_(std::move(positions)) {
  if (!variable.is_readable()) {
    throw Error(ErrorCode::not_supported, variable.unsupported, variable.metadata->path);
  }
  for (const Positions& chosen : positions_) counts_.push_back(chosen.size());
  type_ = variable.metadata->type;
  if (type_.is_variable()) {
    whole_ = read_variable(variable, decode);
    type_ = whole_->type;
  } else if (decode == Decode::cf) {
    type_ = variable.cf.decoded;
    joined_ = variable.cf.joined_characters;
    if (joined_ == 0) converter_ = std::make_shared<const Converter>(variable.cf, type_);
  }
  Dims bytes = counts_;
  bytes.push_back(type_.itemsize);
  element_count(bytes);  // refuses sizes that overflow
}

Dims SelectedValues::shape() const {
  Dims shape;
  for (const Positions& chosen : positions_) {
    if (!chosen.drops_dim()) shape.push_back(chosen.size());
  }
  return shape;
}

void SelectedValues::for_each_piece(
    Engine& engine, std::uint64_t piece_bytes,
    const std::function<void(std::span<const std::byte>)>& use) const {
  if (element_count(counts_) == 0) return;
  // Each chunk of a piece costs memory: pieces with tiny chunks are smaller.
  constexpr std::uint64_t kMaxChunks = 1 << 16;
  const std::uint64_t chunk_bytes = whole_ ? piece_bytes : variable_.array->chunk_bytes();
  if (chunk_bytes < piece_bytes / kMaxChunks)
    piece_bytes = std::max<std::uint64_t>(chunk_bytes, 1) * kMaxChunks;
  // A piece is some positions of dimension `split`, one of each before it and all of those after
  // it.
  const auto budget = static_cast<std::int64_t>(std::min<std::uint64_t>(piece_bytes, INT64_MAX));
  std::int64_t row = type_.itemsize;  // bytes of one position of `split`
  std::size_t split = counts_.size();
  while (split > 0 && row * counts_[split - 1] <= budget) row *= counts_[--split];
  std::int64_t rows = 1, align = 1;
  if (split == 0 && !counts_.empty()) {
    rows = counts_[0];  // all in one piece
    row /= rows;
  } else if (split > 0) {
    --split;
    rows = std::clamp<std::int64_t>(budget / row, 1, counts_[split]);
    // Pieces end where chunks end, so that no chunk is needed twice.
    const std::int64_t chunk = whole_ ? 1 : variable_.array->grid().chunk_shape()[split];
    if (positions_[split].is_range() && rows >= chunk) align = chunk;
  }

  Buffer buffer(static_cast<std::size_t>(rows * row));
  Dims first(counts_.size()), count = counts_;
  for (std::size_t d = 0; d < split; ++d) count[d] = 1;
  for (;;) {
    if (!counts_.empty()) {
      count[split] = std::min(rows, counts_[split] - first[split]);
      if (align > 1 && first[split] + count[split] < counts_[split]) {
        const std::int64_t end = positions_[split][first[split]] + count[split];
        count[split] -= end % align;
      }
    }
    if (whole_)
      copy_piece(first, count, buffer.data());
    else
      read_piece(engine, first, count, buffer.data());
    use(buffer.span().first(static_cast<std::size_t>(element_count(count)) * type_.itemsize));

    if (counts_.empty()) return;
    first[split] += count[split];
    std::size_t d = split + 1;
    while (d > 0 && first[d - 1] >= counts_[d - 1]) {
      first[--d] = 0;
      if (d == 0) return;
      ++first[d - 1];
    }
  }
}

void SelectedValues::read_piece(Engine& engine, const Dims& first, const Dims& count,
                                std::byte* out) const {
  Dims strides = c_strides(count, type_.itemsize);
  for_each_box(positions_, first, count, [&](const Dims& start, const Dims& shape, const Dims& at) {
    Box box{start, shape};
    Dims box_strides = strides;
    if (joined_ > 0) {
      box.start.push_back(0);
      box.shape.push_back(joined_);
      box_strides.push_back(1);
    }
    engine.arrays().read_box(variable_.array, box, converter_, out + offset_of(at, strides),
                             box_strides);
  });
}

void SelectedValues::copy_piece(const Dims& first, const Dims& count, std::byte* out) const {
  const Dims strides = c_strides(count, type_.itemsize);
  const Dims whole_strides = c_strides(whole_->shape, type_.itemsize);
  for_each_box(positions_, first, count, [&](const Dims& start, const Dims& shape, const Dims& at) {
    copy_strided(shape, type_.itemsize, whole_->data.data() + offset_of(start, whole_strides),
                 whole_strides, out + offset_of(at, strides), strides);
  });
}

}  // namespace batchfs
