#include "fs/export/export_form.h"

#include <fmt/format.h>

#include "engine/base/json_text.h"
#include "engine/view/describe/schema.h"
#include "fs/formats/formats.h"

namespace batchfs {

const char* const kExportForms = "zarr, webdataset, mds, safetensors, npz";

namespace {

/// One file per batch: the mount's own.
class FileForm final : public ExportForm {
 public:
  FileForm(const BatchFormat& format, const ExportRange& range, OutputStore& output)
      : format_(format), range_(range), output_(output) {}

  const BatchFormat& format() const override { return format_; }
  std::string last_key() const override { return kManifestKey; }

  std::unique_ptr<ExportUnit> begin(std::int64_t) const override {
    return std::make_unique<Unit>(*this);
  }

  void finish() const override {
    Json manifest = manifest_head(std::string(format_.name()), range_);
    Json files = Json::array();
    for (std::int64_t batch = range_.first; batch < range_.end; ++batch)
      files.push_back({{"file", key(batch)}, {"samples", range_.samples_of(batch)}});
    manifest["files"] = std::move(files);
    output_.put("schema.json", json_text(view_schema(*range_.view)) + "\n");
    output_.put(last_key(), json_text(manifest) + "\n");
  }

 private:
  class Unit final : public ExportUnit {
   public:
    explicit Unit(const FileForm& form) : form_(form) {}
    void add(std::int64_t batch, std::shared_ptr<const Batch> made) override {
      batches_.emplace_back(batch, std::move(made));
    }
    std::size_t items() const override { return batches_.size(); }
    void write(std::size_t item) override {
      const auto& [batch, made] = batches_[item];
      const std::span<const std::byte> part = made->files.at(0).span();
      form_.output_.put(form_.key(batch), {&part, 1});
    }
    std::uint64_t objects() const override { return batches_.size(); }

   private:
    const FileForm& form_;
    std::vector<std::pair<std::int64_t, std::shared_ptr<const Batch>>> batches_;
  };

  std::string key(std::int64_t batch) const {
    return fmt::format("batch-{:06}.{}", batch, format_.name());
  }

  const BatchFormat& format_;
  const ExportRange& range_;
  OutputStore& output_;
};

}  // namespace

bool joins_batches(const std::string& name) {
  return name == "zarr" || name == "webdataset" || name == "mds";
}

std::unique_ptr<ExportForm> make_file_form(const BatchFormat& format, const ExportRange& range,
                                           OutputStore& output) {
  format.layout(*range.view, range.first);  // throws for types that it cannot hold
  return std::make_unique<FileForm>(format, range, output);
}

std::unique_ptr<ExportForm> make_export_form(const std::string& name, const ExportRange& range,
                                             const Compression& compression, OutputStore& output) {
  if (name == "zarr") return make_zarr_form(range, compression, output);
  if (name == "webdataset") return make_webdataset_form(range, output);
  if (name == "mds") return make_mds_form(range, output);
  return make_file_form(format_named(name), range, output);
}

void check_equal_batches(const ExportRange& range, const std::string& form) {
  for (const TensorSpec& tensor : range.view->tensors())
    if (tensor.dims.empty() || tensor.dims[0] != "sample")
      throw Error(
          ErrorCode::not_supported,
          fmt::format("the tensor '{}' is not along samples, which {} needs; use --to npz or "
                      "safetensors",
                      tensor.name, form));
  const std::vector<Dims> wanted = range.view->shapes(range.first);
  for (std::int64_t batch = range.first; batch < range.end; ++batch) {
    std::vector<Dims> shapes = range.view->shapes(batch);
    const bool may_be_short = batch == range.end - 1;
    for (std::size_t t = 0; t < shapes.size(); ++t) {
      if (may_be_short && !shapes[t].empty() && shapes[t][0] <= wanted[t][0])
        shapes[t][0] = wanted[t][0];
      if (shapes[t] == wanted[t]) continue;
      throw Error(ErrorCode::not_supported,
                  fmt::format("the tensor '{}' has another shape in batch {} than in batch {}, "
                              "which {} cannot hold; use --to npz or safetensors",
                              range.view->tensors()[t].name, batch, range.first, form));
    }
  }
}

std::vector<std::uint64_t> sample_bytes(const ExportRange& range) {
  std::vector<std::uint64_t> bytes;
  const std::vector<Dims> shapes = range.view->shapes(range.first);
  for (std::size_t t = 0; t < shapes.size(); ++t)
    bytes.push_back(static_cast<std::uint64_t>(element_count(shapes[t]) /
                                               std::max<std::int64_t>(shapes[t][0], 1)) *
                    range.view->tensors()[t].type.itemsize);
  return bytes;
}

Json manifest_head(const std::string& form, const ExportRange& range) {
  std::int64_t samples = 0;
  for (std::int64_t batch = range.first; batch < range.end; ++batch)
    samples += range.samples_of(batch);
  return {{"form", form},
          {"view", range.view->name()},
          {"epoch", range.epoch},
          {"batches", Json::array({range.first, range.end})},
          {"samples", samples}};
}

}  // namespace batchfs
