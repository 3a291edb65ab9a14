#pragma once
// The pass over one variable of a view for its statistics: reads a run of leaves, and sums them.
//
// A leaf is a run of pieces (chunks; see sweep.h) whose length depends on the store and the
// selection alone. A MomentsTree merges the sums of leaves, of all processes that share the work.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/scan/moments_tree.h"
#include "engine/scan/statistics_form.h"
#include "engine/scan/strided_blocks.h"
#include "engine/scan/sweep.h"
#include "engine/scan/swept_channel.h"

namespace batchfs {

class VariablePass {
 public:
  /// Throws invalid_argument for too many numbers.
  VariablePass(const SweptChannel& channel, const std::vector<std::string>& per,
               const std::string& tendency, bool quantiles);

  const StatisticsForm::Variable& form() const { return form_; }
  /// Pieces of the leaves from `first` to `end`.
  std::int64_t pieces(std::int64_t first, std::int64_t end) const;
  /// Decoded bytes.
  std::uint64_t leaf_bytes() const;

  /// Reads the leaves from `first` to `end`, not empty, and for differences across their border the
  /// piece before them. `progress` as Sweep's. Blocks; one call at a time.
  VariableSums read(Engine& engine, std::int64_t first, std::int64_t end,
                    const Sweep::Progress& progress);

 private:
  struct Part {
    std::int64_t entry;
    MergedMoments moments;
  };
  /// A piece that has been read, until it and the one after it are merged.
  struct Slot {
    Sweep::Piece piece;
    std::shared_ptr<const Buffer> values;
    std::vector<Part> parts, tendencies, border;  // border: from the piece before to this one
    bool has_border = false;
  };
  /// The sums of a leaf that is being merged, in the order of its pieces.
  struct Leaf {
    std::vector<MergedMoments> sums;    // by entry
    std::vector<bool> is_touched;       // by entry
    std::vector<std::int64_t> touched;  // entries

    void add(const std::vector<Part>& parts);
    /// Empties it.
    MomentsNode take(std::int64_t number);
  };

  void find_jumps(const Positions& selected);
  void check_quantiles(std::int64_t entries);
  void count(std::int64_t number, const Sweep::Piece& piece, const Slot& slot);
  bool is_jump(const Sweep::Piece& piece, std::size_t place = 0) const;
  bool continues(std::int64_t number) const;
  void use(std::int64_t number, const Sweep::Piece& piece, std::shared_ptr<const Buffer> values);
  template <class Visit>
  void for_each_entry(const Sweep::Piece& piece, Visit&& visit) const;
  std::vector<Offsets> one_step(std::vector<Offsets> axes) const;
  void add_tendencies(std::int64_t entry, std::vector<Offsets> axes, Slot& slot) const;
  void join(std::int64_t number);
  void merge();

  const std::shared_ptr<const ReachedMask> mask_;  // null: all of `reached_`
  const std::vector<Positions> reached_;           // per dimension
  std::size_t tendency_axis_;
  const Sweep sweep_;
  std::vector<bool> jumps_;        // per distinct index along the tendency's dimension
  std::vector<std::size_t> kept_;  // dimensions of the array
  StatisticsForm::Variable form_;
  std::int64_t leaf_pieces_ = 1;
  std::uint64_t chunk_bytes_;

  std::mutex mutex_;  // guards the fields below
  std::map<std::int64_t, Slot> slots_;
  std::int64_t begin_ = 0, first_ = 0, end_ = 0;  // pieces read, and from first_ on summed
  std::int64_t next_ = 0;                         // piece to be merged
  Leaf values_, tendencies_;
  MomentsTree values_tree_, tendencies_tree_;

  std::mutex counting_;  // guards the fields below; no other lock is taken with it
  std::vector<QuantileSketch> quantiles_;  // by entry
};

}  // namespace batchfs
