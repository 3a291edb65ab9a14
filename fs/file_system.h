#pragma once
// The file system, without FUSE: lookup, attributes, list, open, read. Tests drive it without a
// mount; the FUSE layer is a thin adapter.
//
// Everything but control files is immutable: the store's metadata is pinned when this is made.
// Several of these, each a reading of the store, are one mount: see generations/generations.h.

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/dataset/dataset.h"
#include "engine/pipeline/engine.h"
#include "engine/zarr/hierarchy.h"
#include "fs/control/mount_state.h"
#include "fs/control/store_texts.h"
#include "fs/state_files.h"
#include "fs/streamed_file.h"
#include "fs/tree.h"

namespace batchfs {

class FileSystem final : public StateFiles {
 public:
  struct Options {
    std::string store_url;         // without secrets
    Json config = Json::object();  // what config.json shows: options in effect, no secrets
    std::string handoff_socket;    // target of handoff.sock; empty: none
    std::function<Json()> handoff_statistics;  // its part of status.json
    Json snapshot;                             // the store's state in batch-….json; may be null
    Json reading;  // the same in status.json, with the time of reading; may be null
    std::vector<std::shared_ptr<Store>> other_stores;  // that views read; for status.json
    /// Counts of the whole mount for status.json; empty: this is the whole mount.
    struct Counts {
      std::uint64_t generations = 1, kernel_names = 0;
    };
    std::function<Counts()> counts;
    std::uint64_t started = Trace::now();  // when the mount began
  };

  /// `views` were made from `dataset`. Array values are those of `hierarchy`'s arrays in `store`.
  FileSystem(Options options, std::shared_ptr<Store> store,
             std::shared_ptr<const Hierarchy> hierarchy, std::shared_ptr<const Dataset> dataset,
             std::vector<std::shared_ptr<const View>> views, Engine& engine, Log& log);
  ~FileSystem() override;

  std::optional<Found> lookup(FileNumber parent, std::string_view name) const override;
  std::optional<Found> attributes(FileNumber number) const override;
  bool is_directory(FileNumber number) const override;
  void list(FileNumber directory, std::uint64_t offset, const Visit& visit) const override;
  std::optional<FileNumber> parent(FileNumber number) const override {
    return tree_.parent(number);
  }
  std::string path(FileNumber number) const override { return tree_.path(number); }
  std::optional<std::string> link_target(FileNumber number) const override;
  WaiterId open(FileNumber number, Files::OpenDone done) override;
  void cancel(WaiterId waiter) override { engine_.cancel(waiter); }
  const MemoryFiles& memory_files() const override { return engine_.memory_files(); }
  void set_passthrough(bool on) override { passthrough_ = on; }
  std::uint64_t total_bytes() const override { return total_bytes_; }

 private:
  std::uint64_t size_of(const Node& node, FileNumber number) const;
  std::uint64_t provenance_size(const Node& node) const;
  std::uint64_t fixed_size(const Node& node, FileNumber number) const;
  std::string text_of(const Node& node) const;
  std::string control_text(ControlFile file) const;
  std::unique_ptr<TextSource> provenance(const Node& node) const;
  ZarrBatchFile zarr_file(const Node& node) const;
  std::shared_ptr<OpenFile> open_text(const Node& node) const;
  std::shared_ptr<OpenFile> open_batch_text(const Node& node) const;
  BatchRequest request_of(const Node& node) const;
  WaiterId open_batch(const Node& node, Files::OpenDone done);
  WaiterId open_chunk(const Node& node, Files::OpenDone done);
  MountState state() const;
  StoreContents contents() const;

  const Options options_;
  std::shared_ptr<Store> store_;
  std::shared_ptr<const Hierarchy> hierarchy_;
  std::shared_ptr<const Dataset> dataset_;
  std::vector<ArrayEntry> arrays_;
  Engine& engine_;
  Log& log_;
  std::uint64_t total_bytes_ = 0;  // before tree_, whose making adds to it
  Tree tree_;
  std::atomic<bool> passthrough_{false};
  /// Guards sizes_, and has one text at a time be made. A leaf, but for what makes texts.
  mutable std::mutex texts_mutex_;
  mutable std::unordered_map<std::uint64_t, std::uint64_t> sizes_;  // of fixed texts, by number
  const std::shared_ptr<TextCursors> cursors_ = std::make_shared<TextCursors>();
  mutable Budget text_budget_;  // of what cursors take beside their pieces
};

}  // namespace batchfs
