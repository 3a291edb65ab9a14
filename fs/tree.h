#pragma once
// Paths and numbers of the files of one reading of the store, without a table of paths. A number
// encodes its file by arithmetic alone, so a daemon that restarts on the same store gives every
// file its old number.
//
// The 127 bits (0 does not denote a file):
//
//   1 ...              fixed nodes: everything whose number of entries the metadata fixes; first
//                      the root and the control files, up to kMaxCommonIno
//   2^40 ...           chunk files: arrays one after the other, each with its chunk count
//   2^100 + v * span   view v: the rank directories, then for each epoch and each world W (0 is the
//                      tree without rank directories) the epoch directories of its ranks and the
//                      slots of its batches

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/zarr/chunk_grid.h"
#include "fs/batch_tree.h"
#include "fs/ino.h"

namespace batchfs {

/// Ranks of worlds up to this size can be opened.
inline constexpr std::int64_t kMaxWorld = 65536;

/// Epochs up to this number can be opened.
inline constexpr std::int64_t kMaxEpochs = 1'000'000'000;

/// The file or directory that a number stands for.
struct Node {
  enum class Kind : std::uint8_t {
    directory,  // fixed
    root_summary,
    store_json,
    array_summary,    // index: array
    array_metadata,   // index: array
    array_values,     // index: array
    chunk_directory,  // index: array
    chunk,            // index: array, item: linear chunk number
    view_json,        // index: view
    view_schema,      // index: view
    view_directory,   // index: view
    coordinate,       // index: view, item: number of the coordinate
    control,          // index: ControlFile
    rank_directory,   // index: view, rank, world
    epoch_directory,  // index: view, epoch, rank, world
    batch,            // index: view, epoch, rank, world, item: the rank's batch, slot
  };
  Kind kind = Kind::directory;
  std::uint32_t index = 0;
  std::int64_t item = 0;
  std::int64_t epoch = 0, rank = 0;
  std::int64_t world = 0;  // 0: not below a rank directory, the same batches as world 1
  std::uint32_t slot = 0;
};

enum class ControlFile : std::uint32_t { status, metrics, config, log, trace, handoff };
inline constexpr std::string_view kControlNames[] = {"status.json", "metrics",    "config.json",
                                                     "log",         "trace.json", "handoff.sock"};

/// An array as the tree needs it.
struct TreeArray {
  std::string path;               // "" for a store that is one array
  std::optional<ChunkGrid> grid;  // none when its values cannot be read
};

/// Immutable, thread-safe.
class Tree {
 public:
  /// Throws not_supported if a view has more batches than there are numbers: some 10^16 for all
  /// views together, each with kMaxEpochs epochs. `handoff`: handoff.sock exists. `snapshot`: as
  /// for BatchTree.
  Tree(const std::vector<std::string>& groups, std::vector<TreeArray> arrays,
       std::vector<std::shared_ptr<const View>> views, bool handoff = false,
       const Json& snapshot = nullptr);

  std::optional<Node> node(FileNumber number) const;
  bool is_directory(const Node& node) const;
  /// The one symbolic link, handoff.sock: FUSE has no sockets, but connect(2) follows links.
  static bool is_link(const Node& node) {
    return node.kind == Node::Kind::control &&
           node.index == static_cast<std::uint32_t>(ControlFile::handoff);
  }

  /// The number of `name` in directory `parent`; nullopt when there is none.
  std::optional<FileNumber> lookup(FileNumber parent, std::string_view name) const;
  std::optional<FileNumber> parent(FileNumber number) const;
  /// The path below the root; "" for the root and for no file.
  std::string path(FileNumber number) const;

  /// Calls `visit(name, number, next)` for the entries of a directory from position `offset` on (0
  /// is the first; "." and ".." are not included) until it returns false; `next` is the position
  /// after the entry. Keeps no state between calls.
  using Visit = std::function<bool(const std::string& name, FileNumber number, std::uint64_t next)>;
  void list(FileNumber directory, std::uint64_t offset, const Visit& visit) const;

  const std::vector<TreeArray>& arrays() const { return arrays_; }
  const std::vector<std::shared_ptr<const View>>& views() const { return views_; }
  const BatchTree& batch_tree(std::uint32_t view) const { return batch_trees_[view]; }

 private:
  struct Fixed {
    std::string name;
    Node node;
    FileNumber parent;
    bool listed = true;
    std::vector<FileNumber> children;
  };
  /// Layout of a view's part of the number space.
  struct Span {
    FileNumber first = 0;       // of the epochs
    FileNumber rank_first = 0;  // of the rank directories
    std::int64_t batches = 0;
    std::uint64_t per_batch = 0;
    FileNumber per_world = 0, per_epoch = 0;
  };

  FileNumber add(FileNumber parent, std::string name, Node node, bool listed = true);
  std::string name(FileNumber number, const Node& node) const;
  FileNumber epoch_number(std::uint32_t view, const Node& at) const;
  FileNumber batch_number(const Node& at) const;
  std::optional<FileNumber> lookup_in_view(std::uint32_t view, FileNumber parent,
                                           std::string_view name) const;
  std::optional<FileNumber> lookup_in_epoch(const Node& epoch, std::string_view name) const;
  std::int64_t batch_count(const Node& epoch) const;

  std::vector<TreeArray> arrays_;
  std::vector<std::shared_ptr<const View>> views_;
  std::vector<BatchTree> batch_trees_;
  std::vector<Fixed> fixed_;             // fixed_[number - 1]
  std::vector<FileNumber> chunk_first_;  // of each array, and the end
  std::vector<Span> spans_;
  std::vector<FileNumber> view_numbers_, chunk_directory_numbers_;
};

/// "3.0.0"; "0" for no dimensions.
std::string chunk_file_stem(const Dims& chunk);

}  // namespace batchfs
