#pragma once
// The local folder that becomes an output: objects that are written once, whole, and files that
// several processes look through.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/store/output/output_store.h"

namespace batchfs {

/// Thread-safe. Throws access_denied and io as OutputStore.
class PredictionFolder {
 public:
  /// A path, or file://. Throws not_supported for other places, invalid_argument for text that
  /// cannot name a folder.
  explicit PredictionFolder(const std::string& output);

  OutputStore& store() const { return *store_; }
  const std::string& root() const { return root_; }
  std::string path(const std::string& key) const { return root_ + "/" + key; }

  /// Does the object exist? A power failure may leave an empty one, which does not count.
  bool has(const std::string& key) const;
  void remove(const std::string& key) const;
  /// A folder, if it is empty.
  void remove_folder(const std::string& key) const;
  /// Names of the files and folders in a folder, sorted; none where there is no folder.
  std::vector<std::string> names(const std::string& key) const;
  /// The keys of the objects below a folder, relative to it; "" for the object `key` itself.
  void each_object(const std::string& key,
                   const std::function<void(const std::string& below)>& call) const;

  /// The first line of a file and its size; nullopt: missing. Throws corrupt for a line that is
  /// longer than `max_bytes`.
  struct FirstLine {
    std::string text;         // without its end
    std::uint64_t file_size;  // bytes
  };
  std::optional<FirstLine> first_line(const std::string& key, std::size_t max_bytes) const;

  /// Waits until no other process or thread has the lock.
  std::unique_ptr<OutputStore::Lock> wait_for_lock(const std::string& name) const;

 private:
  std::string root_;  // absolute
  std::shared_ptr<OutputStore> store_;
};

}  // namespace batchfs
