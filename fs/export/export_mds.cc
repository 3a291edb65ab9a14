// MosaicML Streaming's MDS, version 2. Source: streaming/base/format/mds/writer.py and
// encodings.py.
//
// A shard: the number of samples, the offset of each and of the end (32 bits each), the columns as
// JSON, then the samples. A sample: its columns by name, of a fixed size each.

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "engine/base/json_text.h"
#include "engine/base/strings.h"
#include "fs/export/export_form.h"
#include "fs/formats/formats.h"

namespace batchfs {

namespace {

struct MdsColumn {
  std::string name, encoding;
  std::size_t tensor = 0;
  std::uint64_t bytes = 0;  // of one sample
};

/// "ndarray:float32:3,4".
std::string mds_encoding(const TensorSpec& tensor, const Dims& shape) {
  switch (tensor.type.kind) {
    case Kind::signed_int:
    case Kind::unsigned_int:
    case Kind::floating:
      break;
    default:
      throw Error(ErrorCode::not_supported,
                  fmt::format("the tensor '{}' has the type {}, which MDS cannot hold", tensor.name,
                              tensor.type.name()));
  }
  std::string lengths;
  for (std::size_t d = 1; d < shape.size(); ++d)
    lengths += (lengths.empty() ? "" : ",") + std::to_string(shape[d]);
  // A scalar is an array of one element: MDS has no shape without dimensions.
  return fmt::format("ndarray:{}:{}", tensor.type.name(), lengths.empty() ? "1" : lengths);
}

class MdsForm final : public ExportForm {
 public:
  MdsForm(const ExportRange& range, OutputStore& output) : range_(range), output_(output) {
    const std::vector<Dims> shapes = range.view->shapes(range.first);
    const std::vector<std::uint64_t> bytes = sample_bytes(range);
    for (std::size_t t = 0; t < shapes.size(); ++t) {
      const TensorSpec& tensor = range.view->tensors()[t];
      columns_.push_back({tensor.name, mds_encoding(tensor, shapes[t]), t, bytes[t]});
      sample_bytes_ += bytes[t];
    }
    std::sort(columns_.begin(), columns_.end(),
              [](const MdsColumn& a, const MdsColumn& b) { return a.name < b.name; });
    config_ = json_text(config(), -1);
    for (std::int64_t unit = 0; unit < range.units(); ++unit)
      if (shard_bytes(samples_of_unit(unit)) > UINT32_MAX)
        throw Error(ErrorCode::not_supported,
                    "a shard of MDS has less than 4 GB; use a smaller --shard-size or batch");
  }

  const BatchFormat& format() const override { return raw_format(); }
  std::string last_key() const override { return "index.json"; }
  std::unique_ptr<ExportUnit> begin(std::int64_t unit) const override {
    return std::make_unique<Unit>(*this, unit);
  }

  void finish() const override {
    Json shards = Json::array();
    for (std::int64_t unit = 0; unit < range_.units(); ++unit) {
      Json shard = config();
      shard["raw_data"] = {{"basename", key(unit)},
                           {"bytes", shard_bytes(samples_of_unit(unit))},
                           {"hashes", Json::object()}};
      shard["samples"] = samples_of_unit(unit);
      shard["zip_data"] = nullptr;
      shards.push_back(std::move(shard));
    }
    output_.put(last_key(), json_text({{"shards", std::move(shards)}, {"version", 2}}, -1) + "\n");
  }

 private:
  static std::string key(std::int64_t unit) { return fmt::format("shard.{:05}.mds", unit); }

  Json config() const {
    Json encodings = Json::array(), names = Json::array(), sizes = Json::array();
    for (const MdsColumn& column : columns_) {
      encodings.push_back(column.encoding);
      names.push_back(column.name);
      sizes.push_back(column.bytes);
    }
    return {{"column_encodings", std::move(encodings)},
            {"column_names", std::move(names)},
            {"column_sizes", std::move(sizes)},
            {"compression", nullptr},
            {"format", "mds"},
            {"hashes", Json::array()},
            {"size_limit", nullptr},
            {"version", 2}};
  }

  std::uint64_t samples_of_unit(std::int64_t unit) const {
    std::int64_t samples = 0;
    for (std::int64_t b = range_.unit_begin(unit); b < range_.unit_end(unit); ++b)
      samples += range_.samples_of(b);
    return static_cast<std::uint64_t>(samples);
  }
  std::uint64_t head_bytes(std::uint64_t samples) const {
    return 4 * (samples + 2) + config_.size();
  }
  std::uint64_t shard_bytes(std::uint64_t samples) const {
    return head_bytes(samples) + samples * sample_bytes_;
  }

  class Unit final : public ExportUnit {
   public:
    Unit(const MdsForm& form, std::int64_t unit) : form_(form), unit_(unit) {
      const std::uint64_t samples = form.samples_of_unit(unit);
      head_.push_back(static_cast<std::uint32_t>(samples));
      for (std::uint64_t i = 0; i <= samples; ++i)
        head_.push_back(
            static_cast<std::uint32_t>(form.head_bytes(samples) + i * form.sample_bytes_));
      parts_.push_back(std::as_bytes(std::span(head_)));
      parts_.push_back(std::as_bytes(std::span(form.config_)));
    }
    void add(std::int64_t batch, std::shared_ptr<const Batch> made) override {
      const std::int64_t rows = form_.range_.samples_of(batch);
      for (std::int64_t row = 0; row < rows; ++row)
        for (const MdsColumn& column : form_.columns_)
          parts_.push_back(made->files[column.tensor].span().subspan(
              static_cast<std::uint64_t>(row) * column.bytes, column.bytes));
      batches_.push_back(std::move(made));
    }
    void write(std::size_t) override { form_.output_.put(key(unit_), parts_); }

   private:
    const MdsForm& form_;
    const std::int64_t unit_;
    std::vector<std::uint32_t> head_;
    std::vector<std::shared_ptr<const Batch>> batches_;
    std::vector<std::span<const std::byte>> parts_;
  };

  const ExportRange& range_;
  OutputStore& output_;
  std::vector<MdsColumn> columns_;  // by name
  std::string config_;
  std::uint64_t sample_bytes_ = 0;
};

}  // namespace

std::unique_ptr<ExportForm> make_mds_form(const ExportRange& range, OutputStore& output) {
  check_equal_batches(range, "MDS");
  return std::make_unique<MdsForm>(range, output);
}

}  // namespace batchfs
