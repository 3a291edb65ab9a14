// WebDataset: tar archives whose members of one sample have one name before the first dot.

#include <deque>

#include <fmt/format.h>

#include "engine/base/json_text.h"
#include "engine/dataset/labels.h"
#include "engine/view/describe/batch_coordinates.h"
#include "engine/view/describe/schema.h"
#include "fs/export/export_form.h"
#include "fs/export/tar.h"
#include "fs/formats/formats.h"
#include "fs/formats/npy.h"

namespace batchfs {

namespace {

constexpr std::uint64_t kNpyAlignment = 64;

class WebdatasetForm final : public ExportForm {
 public:
  WebdatasetForm(const ExportRange& range, OutputStore& output) : range_(range), output_(output) {
    const std::vector<Dims> shapes = range.view->shapes(range.first);
    for (std::size_t t = 0; t < shapes.size(); ++t) {
      const TensorSpec& tensor = range.view->tensors()[t];
      if (tensor.name.find('.') != std::string::npos)
        throw Error(ErrorCode::not_supported,
                    fmt::format("the tensor '{}' has a dot in its name, which WebDataset takes for "
                                "its own; rename it in the view",
                                tensor.name));
      Dims shape;
      for (std::size_t d = 1; d < shapes[t].size(); ++d) shape.push_back(shapes[t][d]);
      headers_.push_back(npy_header(tensor.type, shape, kNpyAlignment));
    }
    bytes_ = sample_bytes(range);
  }

  const BatchFormat& format() const override { return raw_format(); }
  std::string last_key() const override { return kManifestKey; }
  std::unique_ptr<ExportUnit> begin(std::int64_t unit) const override {
    return std::make_unique<Unit>(*this, unit);
  }

  void finish() const override {
    Json manifest = manifest_head("webdataset", range_);
    Json shards = Json::array();
    for (std::int64_t unit = 0; unit < range_.units(); ++unit) {
      std::int64_t samples = 0;
      for (std::int64_t b = range_.unit_begin(unit); b < range_.unit_end(unit); ++b)
        samples += range_.samples_of(b);
      shards.push_back({{"file", key(unit)}, {"samples", samples}});
    }
    manifest["files"] = std::move(shards);
    output_.put("schema.json", json_text(view_schema(*range_.view)) + "\n");
    output_.put(last_key(), json_text(manifest) + "\n");
  }

 private:
  static std::string key(std::int64_t unit) { return fmt::format("shard-{:06}.tar", unit); }

  class Unit final : public ExportUnit {
   public:
    Unit(const WebdatasetForm& form, std::int64_t unit) : form_(form), unit_(unit) {}

    void add(std::int64_t batch, std::shared_ptr<const Batch> made) override {
      const ExportRange& range = form_.range_;
      const std::vector<std::int64_t> samples = range.view->batch_samples(range.epoch, batch);
      std::vector<std::pair<std::string, NdArray>> coordinates;  // along the samples
      for (const BatchCoordinate& coordinate : batch_coordinates(*range.view, range.epoch, batch))
        if (coordinate.dims == std::vector<std::string>{"sample"})
          coordinates.emplace_back(coordinate.name, coordinate.values());
      const std::int64_t rows = range.samples_of(batch), before = range.samples_before(batch);
      for (std::int64_t row = 0; row < rows; ++row) {
        const std::string name = fmt::format("{:09}", before + row);
        for (std::size_t t = 0; t < made->files.size(); ++t) {
          const std::uint64_t bytes = form_.bytes_[t];
          const std::string& header = form_.headers_[t];
          own(tar_header(fmt::format("{}.{}.npy", name, range.view->tensors()[t].name),
                         header.size() + bytes) +
              header);
          parts_.push_back(
              made->files[t].span().subspan(static_cast<std::uint64_t>(row) * bytes, bytes));
          own(tar_padding(header.size() + bytes));
        }
        Json labels = Json::object();
        for (const auto& [coordinate, values] : coordinates)
          labels[coordinate] = label_json(values, row);
        const std::string json = json_text({{"sample", samples.at(static_cast<std::size_t>(row))},
                                            {"epoch", range.epoch},
                                            {"batch", batch},
                                            {"row", row},
                                            {"coordinates", std::move(labels)}},
                                           -1);
        own(tar_header(name + ".json", json.size()) + json + tar_padding(json.size()));
      }
      batches_.push_back(std::move(made));
    }

    void write(std::size_t) override {
      own(tar_end());
      form_.output_.put(key(unit_), parts_);
    }

   private:
    void own(std::string text) {
      texts_.push_back(std::move(text));
      parts_.push_back(std::as_bytes(std::span(texts_.back())));
    }

    const WebdatasetForm& form_;
    const std::int64_t unit_;
    std::vector<std::shared_ptr<const Batch>> batches_;
    std::deque<std::string> texts_;  // stay where they are
    std::vector<std::span<const std::byte>> parts_;
  };

  const ExportRange& range_;
  OutputStore& output_;
  std::vector<std::string> headers_;  // of the .npy members, by tensor
  std::vector<std::uint64_t> bytes_;
};

}  // namespace

std::unique_ptr<ExportForm> make_webdataset_form(const ExportRange& range, OutputStore& output) {
  check_equal_batches(range, "WebDataset");
  return std::make_unique<WebdatasetForm>(range, output);
}

}  // namespace batchfs
