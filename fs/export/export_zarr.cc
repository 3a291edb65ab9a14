// One Zarr store of all samples in the epoch's order: arrays as format "zarr" of a batch has them,
// joined along sample.

#include <algorithm>
#include <cstring>
#include <map>

#include <fmt/format.h>

#include "engine/base/json_text.h"
#include "engine/write/output_metadata.h"
#include "engine/write/region_copy.h"
#include "fs/export/export_form.h"
#include "fs/formats/formats.h"
#include "fs/formats/zarr_batch.h"

namespace batchfs {

namespace {

using BatchFiles = std::map<std::string, std::string>;

BatchFiles files_of_batch(const ExportRange& range, std::int64_t batch) {
  BatchFiles files;
  for (const ZarrBatchFile& file : zarr_batch_files(*range.view, range.epoch, batch))
    files.emplace(file.path, file.contents());
  return files;
}

bool is_along_samples(const ArrayMetadata& array) {
  const Json& dims = array.attributes.at("_ARRAY_DIMENSIONS");
  return !dims.empty() && dims[0] == "sample";
}

std::int64_t row_bytes(const ArrayMetadata& array) {
  std::int64_t bytes = static_cast<std::int64_t>(array.type.itemsize);
  for (std::size_t d = 1; d < array.shape.size(); ++d) bytes *= array.shape[d];
  return bytes;
}

/// Rows of a chunk of a coordinate: so many that a process holds few bytes of it.
std::int64_t coordinate_rows(const ArrayMetadata& array) {
  constexpr std::int64_t kChunkBytes = 4 << 20;
  const std::int64_t all = std::max<std::int64_t>(array.shape[0], 1);
  return std::clamp<std::int64_t>(kChunkBytes / std::max<std::int64_t>(row_bytes(array), 1), 1,
                                  all);
}

void put_rows(const OutputArray& array, OutputStore& output, const Box& region,
              const std::string& bytes) {
  ObjectWriter writer(array, output, region);
  for (std::size_t i = 0; i < writer.items(); ++i)
    writer.write(i, reinterpret_cast<const std::byte*>(bytes.data()));
}

/// Writes a coordinate along the samples as its rows come, chunk by chunk.
class CoordinateRows {
 public:
  CoordinateRows(const OutputArray& array, OutputStore& output) : array_(array), output_(output) {}

  void add(const std::string& rows) {
    pending_ += rows;
    const auto chunk =
        static_cast<std::size_t>(array_.chunks.object[0] * row_bytes(*array_.metadata));
    while (chunk > 0 && pending_.size() >= chunk) put(array_.chunks.object[0], chunk);
  }
  /// After the last row.
  void finish() {
    const std::int64_t rest = array_.metadata->shape[0] - rows_;
    if (rest > 0) put(rest, pending_.size());
  }

 private:
  void put(std::int64_t rows, std::size_t bytes) {
    Box region = whole_box(array_.metadata->shape);
    region.start[0] = rows_;
    region.shape[0] = rows;
    put_rows(array_, output_, region, pending_);
    pending_.erase(0, bytes);
    rows_ += rows;
  }

  const OutputArray& array_;
  OutputStore& output_;
  std::string pending_;
  std::int64_t rows_ = 0;  // that are written
};

class ZarrForm final : public ExportForm {
 public:
  ZarrForm(const ExportRange& range, const Compression& compression, OutputStore& output)
      : range_(range), output_(output) {
    for (std::int64_t batch = range.first; batch < range.end; ++batch)
      samples_ += range.samples_of(batch);
    const BatchFiles files = files_of_batch(range, range.first);
    for (const auto& [key, text] : files) {
      constexpr std::string_view kDocument = "/.zarray";
      if (!key.ends_with(kDocument)) continue;
      const std::string name = key.substr(0, key.size() - kDocument.size());
      Json document = parse_json(text, key);
      ArrayMetadata source =
          parse_array_v2(name, document, parse_json(files.at(name + "/.zattrs"), key), key);
      OutputChunks chunks{source.chunk_shape, source.chunk_shape};
      const bool is_tensor = tensor_number(name) >= 0;
      if (is_along_samples(source)) {
        document["shape"][0] = samples_;
        source = parse_array_v2(name, document, source.attributes, key);
        if (is_tensor) {
          chunks.object[0] *= range.batches_per_unit;
          chunks.is_sharded = range.batches_per_unit > 1;
        } else {
          chunks.chunk[0] = chunks.object[0] = coordinate_rows(source);
        }
      } else if (is_tensor) {
        throw Error(ErrorCode::not_supported, "a tensor without the dimension sample", name);
      }
      OutputArray made = make_output_array(source, name, 3, chunks, compression);
      (is_tensor ? tensors_ : coordinates_).emplace(name, std::move(made));
    }
  }

  const BatchFormat& format() const override { return raw_format(); }
  std::string last_key() const override { return batchfs::last_key(3, false); }
  std::unique_ptr<ExportUnit> begin(std::int64_t unit) const override {
    return std::make_unique<Unit>(*this, unit);
  }

  void finish() const override {
    put_coordinates();
    output_.put("view.json", json_text(view_json()) + "\n");
    std::vector<const OutputArray*> arrays;
    for (const auto& [name, array] : coordinates_) arrays.push_back(&array);
    for (const auto& [name, array] : tensors_) arrays.push_back(&array);
    put_metadata(output_, 3, arrays, Hierarchy(), "");
  }

 private:
  int tensor_number(const std::string& name) const {
    const auto& tensors = range_.view->tensors();
    for (std::size_t t = 0; t < tensors.size(); ++t)
      if (tensors[t].name == name) return static_cast<int>(t);
    return -1;
  }

  class Unit final : public ExportUnit {
   public:
    Unit(const ZarrForm& form, std::int64_t unit) : form_(form) {
      const ExportRange& range = form.range_;
      const std::int64_t base = range.samples_before(range.first);
      const std::int64_t start = range.samples_before(range.unit_begin(unit)) - base;
      const std::int64_t last = range.unit_end(unit) - 1;
      const std::int64_t end = range.samples_before(last) - base + range.samples_of(last);
      for (const TensorSpec& tensor : range.view->tensors()) {
        const OutputArray& array = form.tensors_.at(tensor.name);
        Box region = whole_box(array.metadata->shape);
        region.start[0] = start;
        region.shape[0] = end - start;
        tensors_.push_back(
            {Buffer(static_cast<std::size_t>(region.elements()) * tensor.type.itemsize),
             std::make_unique<ObjectWriter>(array, form.output_, region)});
        items_ += tensors_.back().writer->items();
      }
    }
    void add(std::int64_t, std::shared_ptr<const Batch> made) override {
      for (std::size_t t = 0; t < tensors_.size(); ++t) {
        const std::span<const std::byte> bytes = made->files[t].span();
        std::memcpy(tensors_[t].values.data() + tensors_[t].filled, bytes.data(), bytes.size());
        tensors_[t].filled += bytes.size();
      }
    }
    std::size_t items() const override { return items_; }
    void write(std::size_t item) override {
      for (Tensor& tensor : tensors_) {
        if (item < tensor.writer->items()) return tensor.writer->write(item, tensor.values.data());
        item -= tensor.writer->items();
      }
    }
    std::uint64_t objects() const override { return tensors_.size(); }

   private:
    struct Tensor {
      Buffer values;
      std::unique_ptr<ObjectWriter> writer;
      std::size_t filled = 0;
    };
    const ZarrForm& form_;
    std::vector<Tensor> tensors_;
    std::size_t items_ = 0;
  };

  void put_coordinates() const {
    std::map<std::string, const OutputArray*> arrays;  // by the file of a batch
    std::map<std::string, CoordinateRows> along;
    for (const auto& [name, array] : coordinates_) {
      const std::string file = name + "/" + zarr_single_chunk(array.metadata->shape.size());
      arrays.emplace(file, &array);
      const auto& dims = array.metadata->dimension_names;
      if (!dims.empty() && dims[0] == "sample") along.try_emplace(file, array, output_);
    }
    for (std::int64_t batch = range_.first; batch < range_.end; ++batch)
      for (const ZarrBatchFile& file : zarr_batch_files(*range_.view, range_.epoch, batch)) {
        if (const auto rows = along.find(file.path); rows != along.end())
          rows->second.add(file.contents());
        else if (const auto it = arrays.find(file.path);
                 it != arrays.end() && batch == range_.first)
          put_rows(*it->second, output_, whole_box(it->second->metadata->shape), file.contents());
      }
    for (auto& [file, rows] : along) rows.finish();
  }

  /// A view of the copy that gives its samples in the order that they have.
  Json view_json() const {
    Json tensors = Json::object();
    for (const TensorSpec& tensor : range_.view->tensors())
      tensors[tensor.name] = {{"variables", Json::array({tensor.name})}};
    return {{"name", range_.view->name()},
            {"window", {{"sample", 1}}},
            {"tensors", std::move(tensors)},
            {"batch", {{"size", range_.view->batch_size()}}},
            {"order", {{"shuffle", "none"}}}};
  }

  const ExportRange& range_;
  OutputStore& output_;
  std::int64_t samples_ = 0;
  std::map<std::string, OutputArray> tensors_, coordinates_;
};

}  // namespace

std::unique_ptr<ExportForm> make_zarr_form(const ExportRange& range, const Compression& compression,
                                           OutputStore& output) {
  check_equal_batches(range, "a Zarr array");
  return std::make_unique<ZarrForm>(range, compression, output);
}

}  // namespace batchfs
