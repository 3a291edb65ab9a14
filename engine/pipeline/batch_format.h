#pragma once
// How a batch lies in files: which files there are, how large, and where each tensor's bytes go.
// The formats themselves (npy, safetensors, npz, zarr, png) are in fs/.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/pipeline/memory_file.h"
#include "engine/view/view.h"

namespace batchfs {

struct BatchLayout {
  struct Literal {
    std::uint64_t offset;
    std::string bytes;
  };
  struct File {
    std::uint64_t size = 0;
    std::vector<Literal> literals;  // headers
  };
  struct Place {
    std::uint32_t file = 0;
    std::uint64_t offset = 0;
  };
  std::vector<File> files;
  std::vector<Place> tensors;  // one per tensor of the view: C order, native byte order
  /// Called once with the files when every tensor is in place (npz checksums, pictures); may be
  /// empty. The layout is the same for every epoch; the contents of the batch are not.
  std::function<void(std::vector<MemoryFile>& files, std::int64_t epoch)> finish;
};

/// Immutable, thread-safe; one object per format, compared by address.
class BatchFormat {
 public:
  virtual ~BatchFormat() = default;
  virtual std::string_view name() const = 0;
  /// Its files go to readers that do nothing but map them: see MemoryFile.
  virtual bool reusable() const { return false; }
  /// Needs no chunk data and no plan: every lookup requests sizes.
  virtual BatchLayout layout(const View& view, std::int64_t batch) const = 0;
};

}  // namespace batchfs
