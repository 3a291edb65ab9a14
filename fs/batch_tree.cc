#include "fs/batch_tree.h"

#include <map>

#include "engine/view/describe/provenance_text.h"
#include "engine/view/spec.h"
#include "fs/formats/formats.h"

namespace batchfs {

std::uint32_t BatchTree::add(BatchSlot slot) {
  const auto number = static_cast<std::uint32_t>(slots_.size());
  if (slot.parent == BatchSlot::kEpochDirectory) top_.push_back(number);
  slots_.push_back(std::move(slot));
  return number;
}

BatchTree::BatchTree(std::shared_ptr<const View> view, Json snapshot)
    : view_(std::move(view)), snapshot_(std::move(snapshot)) {
  using Content = BatchSlot::Content;
  constexpr std::uint32_t kTop = BatchSlot::kEpochDirectory;
  const auto& tensors = view_->tensors();
  const auto tensor_count = static_cast<std::uint32_t>(tensors.size());
  for (const std::string& format : view_->spec().formats) {
    if (format == "npy" && tensor_count == 1) {
      add({kTop, ".npy", Content::tensor_file, &npy_format(), 0});
    } else if (format == "npy") {
      const std::uint32_t directory = add({kTop, "", Content::directory});
      for (std::uint32_t t = 0; t < tensor_count; ++t)
        add({directory, tensors[t].name + ".npy", Content::tensor_file, &npy_format(), t});
    } else if (format == "safetensors") {
      add({kTop, ".safetensors", Content::tensor_file, &safetensors_format(), 0});
    } else if (format == "png") {
      add({kTop, ".png", Content::tensor_file, &png_format(), 0});
    } else if (format == "npz") {
      add({kTop, ".npz", Content::tensor_file, &npz_format(), 0});
    } else if (format == "zarr") {
      const std::uint32_t root = add({kTop, ".zarr", Content::directory});
      std::map<std::string, std::uint32_t> directories;
      for (const ZarrBatchFile& file : zarr_batch_files(*view_, 0, 0)) {
        const std::string& path = file.path;
        const std::size_t slash = path.find('/');
        std::uint32_t parent = root;
        if (slash != std::string::npos) {
          const std::string name = path.substr(0, slash);
          const auto [it, is_new] = directories.try_emplace(name, 0);
          if (is_new) it->second = add({root, name, Content::directory});
          parent = it->second;
        }
        add({parent, path.substr(slash == std::string::npos ? 0 : slash + 1), Content::zarr_file});
      }
      for (std::uint32_t t = 0; t < tensor_count; ++t)
        add({directories.at(tensors[t].name), zarr_single_chunk(tensors[t].shape.size()),
             Content::tensor_file, &raw_format(), t});
    }
  }
  add({kTop, ".json", Content::provenance});
}

std::vector<std::uint32_t> BatchTree::children(std::uint32_t slot) const {
  std::vector<std::uint32_t> result;
  for (std::uint32_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].parent == slot) result.push_back(i);
  return result;
}

std::unique_ptr<TextSource> BatchTree::provenance(std::int64_t epoch, std::int64_t batch,
                                                  ChunkSet::Reserve reserve) const {
  return std::make_unique<ProvenanceText>(view_, epoch, batch, snapshot_, std::move(reserve));
}

ZarrBatchFile BatchTree::zarr_file(std::uint32_t slot, std::int64_t epoch,
                                   std::int64_t batch) const {
  // The path below batch-….zarr/.
  std::string path = slots_[slot].name;
  const std::uint32_t parent = slots_[slot].parent;
  if (slots_[parent].parent != BatchSlot::kEpochDirectory) path = slots_[parent].name + "/" + path;
  for (ZarrBatchFile& file : zarr_batch_files(*view_, epoch, batch))
    if (file.path == path) return std::move(file);
  throw Error(ErrorCode::not_found, "no such file in the batch", path);
}

}  // namespace batchfs
