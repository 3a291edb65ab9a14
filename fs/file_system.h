#pragma once
// The file system, without FUSE: lookup, attributes, list, open, read. Tests drive it without a
// mount; the FUSE layer is a thin adapter.
//
// Everything but control files is immutable: the store's metadata is pinned when this is made.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/dataset/dataset.h"
#include "engine/pipeline/engine.h"
#include "engine/zarr/hierarchy.h"
#include "fs/control/mount_state.h"
#include "fs/control/store_texts.h"
#include "fs/tree.h"

namespace batchfs {

struct Attributes {
  Ino ino = 0;
  bool directory = false;
  bool link = false;  // symbolic
  std::uint64_t size =
      0;  // exact, but 0 for control files, whose length is known when they are opened
  /// Preferred size of reads, in bytes. Python buffers files with it: np.load(mmap_mode="r") reads
  /// that much twice to parse a header of 128 bytes, which must not cost more than the mapping of a
  /// batch. cp and cat read 128 KiB at least. The values of an array are assembled by each request:
  /// few large requests.
  std::uint32_t block_size = kSmallBlock;
  static constexpr std::uint32_t kSmallBlock = 4 << 10, kLargeBlock = 1 << 20;

  bool is_control() const { return !directory && size == 0; }
};

/// An open file. Thread-safe.
class OpenFile {
 public:
  virtual ~OpenFile() = default;

  enum class Caching : std::uint8_t {
    kernel,  // small and immutable: the kernel may keep its pages
    direct,  // reads come to us
  };
  virtual Caching caching() const { return Caching::direct; }

  /// The complete contents as a memory file that the kernel can serve without us; nullptr if there
  /// is none.
  virtual const MemoryFile* memory_file() const { return nullptr; }

  using Bytes = std::span<const std::byte>;
  /// `done` is called once with the bytes (runs that follow each other, valid during the call, of
  /// `size` bytes together, fewer only at the end of the file) or an error, from any thread,
  /// possibly before this returns.
  using ReadDone = std::function<void(std::span<const Bytes>, std::exception_ptr)>;
  virtual void read(std::uint64_t offset, std::uint64_t size, ReadDone done) = 0;
};

class FileSystem {
 public:
  struct Options {
    std::string store_url;         // without secrets
    Json config = Json::object();  // what config.json shows: options in effect, no secrets
    std::string handoff_socket;    // where handoff.sock leads; empty: there is none
    std::function<Json()> handoff_statistics;  // what status.json says of it
  };

  /// `views` were made from `dataset`. Array values are those of `hierarchy`'s arrays in `store`.
  FileSystem(Options options, std::shared_ptr<Store> store,
             std::shared_ptr<const Hierarchy> hierarchy, std::shared_ptr<const Dataset> dataset,
             std::vector<std::shared_ptr<const View>> views, Engine& engine, Log& log);
  ~FileSystem();

  std::optional<Attributes> lookup(Ino parent, std::string_view name) const;
  std::optional<Attributes> attributes(Ino ino) const;

  /// Like Tree::list, with whether each entry is a directory.
  using Visit =
      std::function<bool(const std::string& name, Ino ino, bool directory, std::uint64_t next)>;
  void list(Ino directory, std::uint64_t offset, const Visit& visit) const;
  std::optional<Ino> parent(Ino ino) const { return tree_.parent(ino); }
  std::string path(Ino ino) const { return tree_.path(ino); }
  /// Where a symbolic link leads; nullopt when this is none.
  std::optional<std::string> link_target(Ino ino) const;

  using OpenDone = std::function<void(std::shared_ptr<OpenFile>, std::exception_ptr)>;
  /// Opens a file; for a batch `done` is called when it is complete. Returns an id for cancel(), 0
  /// when there is nothing to cancel.
  Engine::WaiterId open(Ino ino, OpenDone done);
  void cancel(Engine::WaiterId waiter) { engine_.cancel(waiter); }

  /// Where batches lie.
  const MemoryFiles& memory_files() const { return engine_.memory_files(); }

  /// What the mount's own state adds to status.json.
  void set_passthrough(bool on) { passthrough_ = on; }

  /// Sum of the sizes of all arrays, for statfs.
  std::uint64_t total_bytes() const { return total_bytes_; }

 private:
  std::uint64_t size_of(const Node& node) const;
  std::string text_of(const Node& node) const;
  BatchRequest request_of(const Node& node) const;
  Engine::WaiterId open_batch(const Node& node, OpenDone done);
  Engine::WaiterId open_chunk(const Node& node, OpenDone done);
  MountState state() const;
  StoreContents contents() const;

  const Options options_;
  std::shared_ptr<Store> store_;
  std::shared_ptr<const Hierarchy> hierarchy_;
  std::shared_ptr<const Dataset> dataset_;
  std::vector<ArrayEntry> arrays_;
  Engine& engine_;
  Log& log_;
  const std::uint64_t started_ = Trace::now();
  std::uint64_t total_bytes_ = 0;  // before tree_, whose making adds to it
  Tree tree_;
  std::atomic<bool> passthrough_{false};
};

}  // namespace batchfs
