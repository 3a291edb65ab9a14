#pragma once
// Batches from the files of a mount: for readers that the hand-off does not serve (another user, a
// container that the socket is not in).
//
// With passthrough, where the kernel reads batches itself, files are mapped and nothing is copied.
// Otherwise they are read: pages of a mapping would come from the daemon, and its end would kill
// the reader.
//
// The view's directory is held open: a mount whose store is read again still shows the older
// batches there (batchfs-semantics(7)).

#include <string>

#include "engine/base/descriptor.h"
#include "gpu/reader/source.h"

namespace batchfs::reader {

class FileSource final : public Source {
 public:
  /// `directory`: a view's, DIR/views/NAME. Throws not_found, not_supported where its formats are
  /// none that can be read here.
  explicit FileSource(std::string directory);

  const std::shared_ptr<const Schema>& schema() const override { return schema_; }
  const std::shared_ptr<const Coordinates>& coordinates() const override { return coordinates_; }
  const char* mode() const override { return "files"; }
  void start(const Series& series, std::uint32_t ahead) override;
  std::shared_ptr<Batch> next(const Interrupted& interrupted) override;
  std::shared_ptr<Batch> get(std::int64_t epoch, std::int64_t batch,
                             const Interrupted& interrupted) override;

 private:
  std::shared_ptr<Batch> read(std::int64_t epoch, std::int64_t batch, std::int64_t step,
                              const Interrupted& interrupted) const;
  std::shared_ptr<const Mapping> file(const std::string& path,
                                      const Interrupted& interrupted) const;

  const std::string directory_;  // for messages
  const Descriptor held_;        // of it
  const std::string place_;      // the held directory, or its path without /proc
  std::shared_ptr<const Schema> schema_;
  std::shared_ptr<const Coordinates> coordinates_;
  bool safetensors_ = false, map_ = false;
  Series series_;
  std::int64_t next_ = 0;
};

/// The whole text of a small file. Throws not_found, access_denied or io.
std::string read_text(const std::string& path);

}  // namespace batchfs::reader
