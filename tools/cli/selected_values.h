#pragma once
// The chosen values of one array, in C order, in pieces that fit in memory.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/dataset/dataset.h"
#include "engine/dataset/selection.h"
#include "engine/pipeline/engine.h"

namespace batchfs {

class SelectedValues {
 public:
  /// `positions`: one for each of dims_of(variable, decode). `variable` must outlive this.
  /// Throws not_supported when its values cannot be read. Values of variable length are read here,
  /// whole.
  SelectedValues(const Variable& variable, Decode decode, std::vector<Positions> positions);

  const DataType& type() const { return type_; }
  /// Without the dimensions of which one position was chosen.
  Dims shape() const;
  /// Bytes that this holds in memory: of values of variable length.
  std::uint64_t held_memory() const { return whole_ ? whole_->data.size() : 0; }

  /// Calls `use` with all elements, at most about `piece_bytes` at a time.
  void for_each_piece(Engine& engine, std::uint64_t piece_bytes,
                      const std::function<void(std::span<const std::byte>)>& use) const;

  /// Names and lengths of an array's dimensions, as stored or as decoded (characters joined to
  /// strings).
  static std::vector<std::pair<std::string, std::int64_t>> dims_of(const Variable& variable,
                                                                   Decode decode);

 private:
  /// Positions [first, first + count) of each chosen dimension: their place in the array is one
  /// box.
  void read_piece(Engine& engine, const Dims& first, const Dims& count, std::byte* out) const;
  void copy_piece(const Dims& first, const Dims& count, std::byte* out) const;

  const Variable& variable_;
  std::vector<Positions> positions_;
  Dims counts_;  // of positions
  DataType type_;
  std::shared_ptr<const Converter> converter_;  // null: as stored
  std::int64_t joined_ = 0;       // length of the character dimension that became strings
  std::optional<NdArray> whole_;  // values of variable length
};

}  // namespace batchfs
