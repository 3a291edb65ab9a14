#include "engine/view/made/made_channel.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "engine/base/json.h"

namespace batchfs {

namespace {

constexpr std::int64_t kMadeAtOnce = 512;  // values that are made at a time

/// Strides of a coordinate's values along the channel's dimensions, in values; 0 along those that
/// it lacks.
Dims strides_along(const EarthCoordinate* coordinate, const std::vector<std::string>& dims) {
  Dims strides(dims.size());
  if (coordinate == nullptr) return strides;
  const Dims own = c_strides(coordinate->shape, 1);
  for (std::size_t d = 0; d < dims.size(); ++d)
    for (std::size_t k = 0; k < coordinate->dims.size(); ++k)
      if (coordinate->dims[k] == dims[d]) strides[d] = own[k];
  return strides;
}

}  // namespace

MadeChannel::MadeChannel(MadeSpec spec, const Dataset& dataset) : spec_(std::move(spec)) {
  const MadeKind& kind = *spec_.kind;
  const auto add_dim = [&](const std::string& dim) {
    if (std::find(variable_.dims.begin(), variable_.dims.end(), dim) != variable_.dims.end())
      return;
    variable_.dims.push_back(dim);
    variable_.shape.push_back(dataset.dim_size(dim));
  };
  if (kind.needs_time) {
    times_ = std::make_unique<TimeLabels>(dataset, spec_.times, spec_.path);
    for (const std::string& dim : spec_.times.dims) add_dim(dim);
  }
  std::vector<const Variable*> operands;
  for (std::size_t i = 0; i < spec_.of.size(); ++i) {
    const std::string path = fmt::format("{}.of[{}]", spec_.path, i);
    const Variable* operand = dataset.find(spec_.of[i]);
    if (operand == nullptr) {
      std::vector<std::string> names;
      for (const Variable& each : dataset.variables()) names.push_back(each.name);
      throw Error(ErrorCode::not_found, fmt::format("{}: the store has no variable '{}'{}", path,
                                                    spec_.of[i], did_you_mean(spec_.of[i], names)));
    }
    const DataType& type = operand->cf.decoded;
    if (!type.is_float() && !type.is_integer())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: '{}' is {}, and '{}' is made of numbers", path, operand->name,
                              type.name(), kind.name));
    operands.push_back(operand);
  }
  // In the order of the one with most dimensions.
  std::stable_sort(operands.begin(), operands.end(), [](const Variable* a, const Variable* b) {
    return a->dims.size() > b->dims.size();
  });
  for (const Variable* operand : operands)
    for (const std::string& dim : operand->dims) add_dim(dim);
  std::shared_ptr<const EarthCoordinate> latitudes, longitudes;
  if (kind.needs_latitude)
    latitudes = read_earth_coordinate(dataset, EarthAxis::latitude, spec_.in_degrees, spec_.path);
  if (kind.needs_longitude)
    longitudes = read_earth_coordinate(dataset, EarthAxis::longitude, spec_.in_degrees, spec_.path);
  for (const auto& coordinate : {latitudes, longitudes})
    if (coordinate != nullptr)
      for (const std::string& dim : coordinate->dims) add_dim(dim);
  latitude_strides_ = strides_along(latitudes.get(), variable_.dims);
  longitude_strides_ = strides_along(longitudes.get(), variable_.dims);
  if (!is_combined()) formula_ = make_formula(spec_, latitudes, longitudes);
  variable_.name = spec_.name;
  variable_.cf.stored = variable_.cf.decoded = variable_.cf.arithmetic = float64();
}

void MadeChannel::write(const Box& positions, const Converter& converter, std::byte* out,
                        const Dims& strides, const Repeat* repeat) const {
  if (positions.empty()) return;
  // Repetitions nearer than the next value are written with the value; those further apart are
  // copied when all values are written.
  Repeat near, far;
  std::int64_t nearest = INT64_MAX;
  for (std::size_t d = 0; d < strides.size(); ++d)
    if (positions.shape[d] > 1) nearest = std::min(nearest, strides[d]);
  for (std::size_t d = 0; repeat != nullptr && d < repeat->counts.size(); ++d) {
    Repeat& which = repeat->strides[d] < nearest ? near : far;
    which.counts.push_back(repeat->counts[d]);
    which.strides.push_back(repeat->strides[d]);
  }
  const std::size_t rank = positions.start.size();
  // The time is the same along a run: the first dimensions are those of times.
  const bool has_run = rank > (times_ != nullptr ? times_->rank() : 0);
  const std::size_t outer = has_run ? rank - 1 : rank;
  Dims at(outer);
  for (;;) {
    Dims position = positions.start;
    std::byte* to = out;
    for (std::size_t d = 0; d < outer; ++d) {
      position[d] += at[d];
      to += at[d] * strides[d];
    }
    write_run(position, outer, has_run ? positions.shape[outer] : 1, converter, to,
              has_run ? strides[outer] : 0, near);
    std::size_t d = outer;
    while (d > 0 && at[d - 1] + 1 == positions.shape[d - 1]) at[--d] = 0;
    if (d == 0) break;
    ++at[d - 1];
  }
  if (far.counts.empty()) return;
  Dims shape = positions.shape, there = strides;
  for (std::size_t d = 0; d < near.counts.size(); ++d) {
    shape.push_back(near.counts[d]);
    there.push_back(near.strides[d]);
  }
  repeat_strided(shape, converter.result_itemsize(), out, there, far);
}

void MadeChannel::write_run(const Dims& position, std::size_t axis, std::int64_t count,
                            const Converter& converter, std::byte* out, std::int64_t stride,
                            const Repeat& near) const {
  const std::size_t itemsize = converter.result_itemsize();
  std::array<double, kMadeAtOnce> values;
  std::array<std::byte, kMadeAtOnce * 16> converted;
  CellRun cells;
  for (std::size_t d = 0; d < position.size(); ++d) {
    cells.latitude += position[d] * latitude_strides_[d];
    cells.longitude += position[d] * longitude_strides_[d];
  }
  if (axis < position.size()) {
    cells.latitude_step = latitude_strides_[axis];
    cells.longitude_step = longitude_strides_[axis];
  }
  Dims origin = position;
  const std::int64_t time = times_ != nullptr ? times_->number(position) : 0;
  for (std::int64_t done = 0; done < count; done += cells.count) {
    cells.count = std::min(kMadeAtOnce, count - done);
    formula_->evaluate(times_.get(), time, cells, values.data());
    // A run is the last dimension; the others are one position long.
    Dims shape(position.size(), 1), source(position.size(), 8), target(position.size());
    const bool is_near = !near.counts.empty();
    if (axis < position.size()) {
      shape[axis] = cells.count;
      target[axis] = is_near ? static_cast<std::int64_t>(itemsize) : stride;
    }
    std::byte* to = out + done * stride;
    converter.convert(shape, reinterpret_cast<const std::byte*>(values.data()), source,
                      is_near ? converted.data() : to, target, origin);
    for (std::int64_t i = 0; is_near && i < cells.count; ++i)
      fill_strided(near.counts, itemsize, converted.data() + static_cast<std::size_t>(i) * itemsize,
                   to + i * stride, near.strides);
    cells.latitude += cells.count * cells.latitude_step;
    cells.longitude += cells.count * cells.longitude_step;
    if (axis < position.size()) origin[axis] += cells.count;
  }
}

}  // namespace batchfs
