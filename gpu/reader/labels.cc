#include "gpu/reader/labels.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "engine/base/error.h"

namespace batchfs::reader {

namespace {

[[noreturn]] void bad_labels(const char* what) { throw Error(ErrorCode::corrupt, what); }

class ReceivedCoordinates final : public Coordinates {
 public:
  ReceivedCoordinates(std::shared_ptr<const Mapping> memory, std::shared_ptr<const Schema> schema,
                      std::vector<std::span<const std::byte>> values)
      : memory_(std::move(memory)), schema_(std::move(schema)), values_(std::move(values)) {}

  std::span<const std::byte> values(std::size_t number) const override {
    const std::span<const std::byte> values = values_.at(number);
    if (values.empty() && schema_->coordinates[number].size > 0)
      throw Error(ErrorCode::not_supported, "the coordinate '" + schema_->coordinates[number].name +
                                                "' is too large to be sent");
    return values;
  }

 private:
  const std::shared_ptr<const Mapping> memory_;
  const std::shared_ptr<const Schema> schema_;
  const std::vector<std::span<const std::byte>> values_;
};

void check_windows(const Schema& schema, std::int64_t samples, const Windows::Values& values) {
  const std::size_t count = static_cast<std::size_t>(samples), dims = schema.windows.size();
  if (samples < 0 || samples > handoff::kMaxSamples || values.size() != count * (1 + dims))
    bad_labels("a batch has another number of windows than of samples");
  for (std::size_t i = 0; i < count; ++i)
    if (values[i] < 0) bad_labels("the number of a sample is negative");
  for (std::size_t i = count; i < values.size(); ++i)
    if (values[i] < 0 || values[i] >= schema.windows[(i - count) % dims].length)
      bad_labels("a window begins outside of the selection");
}

/// A value of a number's type, as it lies in memory.
template <class T>
T value_at(std::span<const std::byte> values, std::int64_t i) {
  T value;
  std::memcpy(&value, values.data() + static_cast<std::size_t>(i) * sizeof value, sizeof value);
  return value;
}

/// Nanoseconds in one count of "datetime64[s]".
std::int64_t nanoseconds(const std::string& type) {
  const std::size_t open = type.find('[');
  const std::string unit = open == std::string::npos ? "" : type.substr(open);
  for (const auto& [name, count] :
       {std::pair("[ns]", INT64_C(1)), std::pair("[us]", INT64_C(1000)),
        std::pair("[ms]", INT64_C(1000'000)), std::pair("[s]", INT64_C(1000'000'000)),
        std::pair("[m]", INT64_C(60'000'000'000)), std::pair("[h]", INT64_C(3600'000'000'000)),
        std::pair("[D]", INT64_C(86400'000'000'000))})
    if (unit == name) return count;
  throw Error(ErrorCode::not_supported, "labels of type " + type + " have no length in seconds");
}

Label label_at(const CoordinateInfo& coordinate, std::span<const std::byte> values,
               std::int64_t i) {
  const std::string& name = coordinate.dtype.name;
  if (coordinate.dtype.itemsize == 0)
    throw Error(ErrorCode::not_supported, "labels of type " + name + " are not numbers");
  const std::string_view kind(coordinate.dtype.typestr.data() + 1, 2);
  Label label{.type = Label::Type::integer};
  const bool is_time = kind[0] == 'M';
  if (is_time || kind[0] == 'm') {
    label.type = is_time ? Label::Type::time : Label::Type::duration;
    label.integer = value_at<std::int64_t>(values, i);
    if (label.integer != INT64_MIN &&
        __builtin_mul_overflow(label.integer, nanoseconds(name), &label.integer))
      throw Error(ErrorCode::not_supported,
                  "the label of '" + coordinate.name + "' is outside of what nanoseconds hold");
  } else if (kind == "i1" || kind == "b1") {
    label.integer = value_at<std::int8_t>(values, i);
  } else if (kind == "i2") {
    label.integer = value_at<std::int16_t>(values, i);
  } else if (kind == "i4") {
    label.integer = value_at<std::int32_t>(values, i);
  } else if (kind == "i8" || kind == "u8") {
    label.integer = value_at<std::int64_t>(values, i);
    if (kind == "u8" && label.integer < 0) {
      label.type = Label::Type::number;
      label.number = static_cast<double>(value_at<std::uint64_t>(values, i));
    }
  } else if (kind == "u1") {
    label.integer = value_at<std::uint8_t>(values, i);
  } else if (kind == "u2") {
    label.integer = value_at<std::uint16_t>(values, i);
  } else if (kind == "u4") {
    label.integer = value_at<std::uint32_t>(values, i);
  } else if (kind == "f4" || kind == "f8") {
    label.type = Label::Type::number;
    label.number = kind == "f4" ? value_at<float>(values, i) : value_at<double>(values, i);
  } else {
    throw Error(ErrorCode::not_supported, "labels of type " + name + " are not numbers");
  }
  return label;
}

}  // namespace

std::shared_ptr<const Coordinates> received_coordinates(std::shared_ptr<const Mapping> memory,
                                                        std::uint64_t begin,
                                                        const handoff::CoordinatesRecord& record,
                                                        std::shared_ptr<const Schema> schema) {
  using handoff::CoordinateRecord;
  const std::size_t count = schema->coordinates.size();
  if (record.count != count || record.window_count != schema->windows.size() ||
      record.length < count * sizeof(CoordinateRecord) || begin > memory->size() ||
      record.length > memory->size() - begin)
    bad_labels("the coordinates are not those of the schema");
  const std::span<const std::byte> all(memory->data() + begin, record.length);
  std::vector<std::span<const std::byte>> values;
  for (std::size_t c = 0; c < count; ++c) {
    const auto one = value_at<CoordinateRecord>(all, static_cast<std::int64_t>(c));
    const CoordinateInfo& info = schema->coordinates[c];
    if (one.offset > all.size() || one.bytes > all.size() - one.offset ||
        (one.bytes != 0 && info.dtype.itemsize != 0 &&
         one.bytes != bytes_of({info.size}, info.dtype.itemsize)))
      bad_labels("a coordinate has another length than in the schema");
    values.push_back(all.subspan(one.offset, one.bytes));
  }
  return std::make_shared<ReceivedCoordinates>(std::move(memory), std::move(schema),
                                               std::move(values));
}

Windows::Windows(const Schema& schema, std::int64_t samples, Values values)
    : samples_(samples), loaded_(true), values_(std::move(values)) {
  check_windows(schema, samples_, values_);
}

Windows::Windows(std::shared_ptr<const Schema> schema, std::int64_t samples,
                 std::function<Values()> load)
    : schema_(std::move(schema)), samples_(samples), load_(std::move(load)) {}

const Windows::Values& Windows::values() const {
  const std::lock_guard lock(mutex_);
  if (loaded_) return values_;
  Values values = load_();
  check_windows(*schema_, samples_, values);
  values_ = std::move(values);
  loaded_ = true;
  return values_;
}

const Windows::Values& windows_of(const Batch& batch) {
  if (batch.windows == nullptr)
    throw Error(
        ErrorCode::not_supported,
        "the batchfs process is of a version that does not say which samples a batch holds");
  return batch.windows->values();
}

Label label_of(const Batch& batch, std::int64_t sample, const std::string& dim) {
  const Windows::Values& windows = windows_of(batch);
  if (sample < 0 || sample >= batch.samples)
    throw Error(ErrorCode::not_found, "the batch has no sample " + std::to_string(sample));
  const std::vector<WindowInfo>& dims = batch.schema->windows;
  const auto window =
      std::find_if(dims.begin(), dims.end(), [&](const WindowInfo& one) { return one.dim == dim; });
  if (window == dims.end())
    throw Error(ErrorCode::not_found, "the view has no window along '" + dim + "'");
  const std::size_t at = static_cast<std::size_t>(batch.samples) +
                         static_cast<std::size_t>(sample) * dims.size() +
                         static_cast<std::size_t>(window - dims.begin());
  const std::int64_t start = windows.at(at);
  if (window->coordinate < 0) return {.integer = window->position(start)};
  const auto number = static_cast<std::size_t>(window->coordinate);
  return label_at(batch.schema->coordinates[number], batch.coordinates->values(number), start);
}

}  // namespace batchfs::reader
