#include "gpu/program/assembly_plan.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "engine/base/rounding.h"
#include "engine/view/tensors/tensor_set.h"

namespace batchfs::gpu {

namespace {

constexpr std::size_t kMaxGathers = 1 << 22;
/// Bytes of values that are given with the samples: all of a view lie in the constants area.
constexpr std::size_t kMaxGiven = 16 << 20;
constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 30;  // of one row

Number number_of_type(const DataType& type) {
  const auto sized = [&](Number one, Number two, Number four, Number eight) {
    return type.itemsize == 1 ? one : type.itemsize == 2 ? two : type.itemsize == 4 ? four : eight;
  };
  switch (type.kind) {
    case Kind::signed_int:
      return sized(Number::i8, Number::i16, Number::i32, Number::i64);
    case Kind::boolean:
      return Number::u8;
    case Kind::unsigned_int:
      return sized(Number::u8, Number::u16, Number::u32, Number::u64);
    case Kind::bfloat16:
      return Number::bf16;
    case Kind::floating:
      return sized(Number::f64, Number::f16, Number::f32, Number::f64);
    default:
      throw Error(ErrorCode::not_supported,
                  fmt::format("the GPU does not convert values of type {}", type.name()));
  }
}

}  // namespace

AssemblyTables::AssemblyTables(const View& view) {
  for (std::uint32_t i = 0; i < view.tensor_set().made.size(); ++i)
    if (view.tensor_set().made[i].is_combined())
      throw Error(ErrorCode::not_supported, "the GPU does not combine variables",
                  view.tensor_set().made[i].variable().name);
  if (!view.tensor_set().combinations.empty())
    throw Error(ErrorCode::not_supported, "the GPU does not coarsen tensors", "coarsen");
  for (const Variable* variable : view.variables()) {
    const auto& fill = variable->array->metadata().fill_value;
    fills_.push_back(add(fill.data(), fill.size()));
  }
  for (const TensorSpec& tensor : view.tensors()) {
    Conversion copies;
    copies.copies = true;
    copies.item = copies.result_item =
        static_cast<std::uint8_t>(std::min<std::size_t>(tensor.type.itemsize, 255));
    pads_.emplace_back(add(tensor.pad.data(), tensor.pad.size()),
                       static_cast<std::uint32_t>(conversions_.size()));
    conversions_.push_back(copies);
    if (tensor.values != nullptr && tensor.values->size() > kMaxGiven)
      throw Error(ErrorCode::not_supported,
                  fmt::format("the GPU does not take labels of {} bytes", tensor.values->size()),
                  tensor.name);
    given_.push_back(tensor.values == nullptr ? 0
                                              : add(tensor.values->data(), tensor.values->size()));
  }
  for (const auto& [pair, converter] : view.tensor_set().converters) {
    try {
      rows_[pair] = static_cast<std::uint32_t>(conversions_.size());
      conversions_.push_back(convert(*converter));
    } catch (Error& error) {
      throw error.at(view.variables()[pair.second]->name);
    }
  }
}

std::uint64_t AssemblyTables::add(const void* data, std::size_t size) {
  const std::size_t at = round_up<std::size_t>(constants_.size(), 16);
  constants_.resize(at + size);
  if (size > 0) std::memcpy(constants_.data() + at, data, size);
  return at;
}

Conversion AssemblyTables::convert(const Converter& converter) {
  const auto refuse = [](const char* what) -> Error {
    return Error(ErrorCode::not_supported, fmt::format("the GPU does not convert {}", what));
  };
  const CfDecoding& cf = converter.decoding();
  const Finish& finish = converter.finish();
  Conversion c;
  if (converter.source_itemsize() > 255 || converter.result_itemsize() > 255)
    throw refuse("elements of so many bytes");
  c.item = static_cast<std::uint8_t>(converter.source_itemsize());
  c.result_item = static_cast<std::uint8_t>(converter.result_itemsize());
  if (converter.is_copy()) {
    c.copies = true;
    return c;
  }
  if (cf.to_bool) throw refuse("numbers to bool");
  if (cf.time != CfDecoding::Time::none) throw refuse("times");
  if (cf.joined_characters > 0) throw refuse("characters");
  if (!cf.masked_complex.empty()) throw refuse("complex numbers with a fill value");
  if (!converter.result().is_float() || (cf.decoded.is_integer() && cf.has_scale))
    throw refuse("scaled integers");
  c.stored = number_of_type(cf.stored);
  c.result = number_of_type(converter.result());
  c.in_doubles = !finish.nothing() || converter.result().kind == Kind::bfloat16;
  c.arithmetic = cf.decoded.is_integer() ? Number::f64 : number_of_type(cf.arithmetic);
  c.has_scale = cf.has_scale;
  c.has_offset = cf.has_offset;
  c.scale = cf.scale;
  c.offset = cf.offset;
  c.masks = static_cast<std::uint32_t>(cf.masked.size());
  c.masked = add(cf.masked.data(), cf.masked.size() * sizeof(double));
  c.has_nan_value = finish.nan_value.has_value();
  c.nan_value = finish.nan_value.value_or(0);
  if (const Normalization* normalization = finish.normalization.get(); normalization != nullptr) {
    if (normalization->log_scale) throw refuse("logarithms");
    c.normalises = true;
    c.entries = normalization->subtract.size();
    const auto [it, is_new] = normalizations_.try_emplace(normalization);
    if (is_new) {
      const std::size_t bytes = c.entries * sizeof(double);
      it->second.first = add(normalization->subtract.data(), bytes);
      it->second.second = add(normalization->divide.data(), bytes);
    }
    c.subtract = it->second.first;
    c.divide = it->second.second;
  }
  return c;
}

void GatherPlan::add(std::uint32_t conversion, const Dims& shape, const Place& source,
                     std::uint8_t swap, const Place& target, std::uint64_t entry,
                     const Dims& entry_strides) {
  Gather row;
  row.source = source.offset;
  row.target = target.offset;
  row.entry = entry;
  row.conversion = conversion;
  row.swap = swap;
  std::vector<GatherDim> dims;  // fastest first
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (shape[d] == 0) return;
    if (shape[d] == 1) continue;
    if (shape[d] > static_cast<std::int64_t>(kMaxElements))
      throw Error(ErrorCode::not_supported, "a chunk has too many elements for the GPU");
    const GatherDim dim{static_cast<std::uint32_t>(shape[d]),
                        source.strides.empty() ? 0 : source.strides[d], target.strides[d],
                        entry_strides.empty() ? 0 : entry_strides[d]};
    if (!dims.empty()) {
      GatherDim& last = dims.back();
      const auto continues = [&](std::int64_t inner, std::int64_t outer) {
        return outer == inner * last.count;
      };
      if (continues(last.source_stride, dim.source_stride) &&
          continues(last.target_stride, dim.target_stride) &&
          continues(last.entry_stride, dim.entry_stride) &&
          std::uint64_t{last.count} * dim.count <= kMaxElements) {
        last.count *= dim.count;
        continue;
      }
    }
    dims.push_back(dim);
  }
  add_box(row, std::move(dims));
}

void GatherPlan::add_fill(std::uint32_t conversion, const Dims& shape, std::uint64_t fill_value,
                          const Place& target, std::uint64_t entry, const Dims& entry_strides) {
  const std::size_t before = gathers_.size();
  add(conversion, shape, {fill_value, {}}, 1, target, entry, entry_strides);
  for (std::size_t i = before; i < gathers_.size(); ++i) gathers_[i].from_constants = true;
}

void GatherPlan::add_box(Gather row, std::vector<GatherDim> dims) {
  std::uint64_t elements = 1;
  for (const GatherDim& dim : dims) elements *= elements > kMaxElements ? 1 : dim.count;
  if (dims.size() > kGatherDims ||
      elements > kMaxElements) {  // a row for each step of the slowest dimension
    const GatherDim slowest = dims.back();
    dims.pop_back();
    for (std::uint32_t i = 0; i < slowest.count; ++i) {
      add_box(row, dims);
      row.source += static_cast<std::uint64_t>(slowest.source_stride);
      row.target += static_cast<std::uint64_t>(slowest.target_stride);
      row.entry += static_cast<std::uint64_t>(slowest.entry_stride);
    }
    return;
  }
  if (gathers_.size() >= kMaxGathers)
    throw Error(ErrorCode::not_supported, "a batch has too many boxes for the GPU");
  row.elements = static_cast<std::uint32_t>(elements);
  row.first_slice = slices_;
  row.dims = static_cast<std::uint8_t>(std::max<std::size_t>(1, dims.size()));
  for (std::size_t d = 0; d < dims.size(); ++d) row.dim[d] = dims[d];
  gathers_.push_back(row);
  slices_ += gather_slices(row.elements);
}

void add_repeats(const Repeat& repeat, Dims& shape, GatherPlan::Place& source,
                 GatherPlan::Place& target, Dims& entries) {
  struct Axis {
    std::int64_t count, source, target, entry;
  };
  std::vector<Axis> axes;
  for (std::size_t d = 0; d < repeat.counts.size(); ++d)
    axes.push_back({repeat.counts[d], 0, repeat.strides[d], 0});
  for (std::size_t d = 0; d < shape.size(); ++d)
    axes.push_back({shape[d], source.strides.empty() ? 0 : source.strides[d], target.strides[d],
                    entries.empty() ? 0 : entries[d]});
  std::stable_sort(axes.begin(), axes.end(),
                   [](const Axis& a, const Axis& b) { return a.target > b.target; });
  shape = source.strides = target.strides = entries = {};
  for (const Axis& axis : axes) {
    shape.push_back(axis.count);
    source.strides.push_back(axis.source);
    target.strides.push_back(axis.target);
    entries.push_back(axis.entry);
  }
}

std::pair<std::uint64_t, std::uint64_t> bytes_used(const Array& array, const BatchPlan& plan,
                                                   const ChunkUse& use) {
  Box box = plan.parts[use.first_part].source;
  for (std::uint32_t i = 1; i < use.part_count; ++i)
    box = bounding_box(box, plan.parts[use.first_part + i].source);
  const Dims& shape = array.grid().chunk_shape();
  std::uint64_t first = 0;
  for (std::size_t d = 0; d < shape.size(); ++d)
    first = first * static_cast<std::uint64_t>(shape[d]) + static_cast<std::uint64_t>(box.start[d]);
  first *= array.type().itemsize;
  return {first, first + array.run_bytes(box)};
}

void add_use(GatherPlan& plan, const View& view, const AssemblyTables& tables,
             const BatchPlan& batch, const ChunkUse& use, const DecodedPlace* chunk,
             std::span<const std::uint64_t> tensors) {
  const ChunkGrid& grid = view.variables()[use.variable]->array->grid();
  const Dims index = grid.chunk(use.chunk);
  for (std::uint32_t i = use.first_part; i < use.first_part + use.part_count; ++i) {
    const Part& part = batch.parts[i];
    const Normalization* normalization =
        view.tensor_set().converter(part.tensor, use.variable).finish().normalization.get();
    std::uint64_t entry = 0;
    Dims entries;
    if (normalization != nullptr) {
      entries = normalization->strides;
      for (std::size_t d = 0; d < index.size(); ++d)
        entry += static_cast<std::uint64_t>(
            (index[d] * grid.chunk_shape()[d] + part.source.start[d]) * entries[d]);
    }
    Dims shape = part.source.shape;
    GatherPlan::Place target{tensors[part.tensor] + static_cast<std::uint64_t>(part.offset),
                             part.strides};
    GatherPlan::Place source;
    if (chunk != nullptr) {
      source = {chunk->offset, chunk->form->strides};
      for (std::size_t d = 0; d < index.size(); ++d)
        source.offset += static_cast<std::uint64_t>(part.source.start[d] * source.strides[d]);
    }
    if (part.repeat >= 0)
      add_repeats(batch.repeats[static_cast<std::size_t>(part.repeat)], shape, source, target,
                  entries);
    const std::uint32_t conversion = tables.conversion(part.tensor, use.variable);
    if (chunk == nullptr)
      plan.add_fill(conversion, shape, tables.fill_value(use.variable), target, entry, entries);
    else
      plan.add(conversion, shape, source, chunk->form->swap, target, entry, entries);
  }
}

void add_paddings(GatherPlan& plan, const AssemblyTables& tables, const BatchPlan& batch,
                  std::span<const std::uint64_t> tensors) {
  for (const Padding& padding : batch.paddings)
    plan.add_fill(
        tables.pad_conversion(padding.tensor), padding.shape, tables.pad(padding.tensor),
        {tensors[padding.tensor] + static_cast<std::uint64_t>(padding.offset), padding.strides}, 0,
        {});
}

void add_given(GatherPlan& plan, const View& view, const AssemblyTables& tables,
               const BatchPlan& batch, std::span<const std::uint64_t> tensors) {
  for (const GivenValue& value : batch.given) {
    const auto itemsize = static_cast<std::int64_t>(view.tensors()[value.tensor].type.itemsize);
    plan.add_fill(tables.pad_conversion(value.tensor), {1},
                  tables.given(value.tensor) + static_cast<std::uint64_t>(value.sample * itemsize),
                  {tensors[value.tensor] + static_cast<std::uint64_t>(value.offset), {itemsize}}, 0,
                  {});
  }
}

void GatherPlan::clear() { *this = GatherPlan(); }

}  // namespace batchfs::gpu
