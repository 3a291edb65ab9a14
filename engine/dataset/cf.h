#pragma once
// CF decoding as xarray does it: how stored values become the values of xarray.open_zarr(...).values.
// Source: xarray.conventions / xarray.coding (mask and scale, times, strings), current release;
// CF Conventions 1.11, sections 2.5.1, 4.4 and 8.1.

#include <cstdint>
#include <string>
#include <vector>

#include "engine/zarr/array_metadata.h"

namespace batchfs {

enum class Decode : std::uint8_t {
  raw,  // stored values in native byte order, as zarr-python gives them
  cf,   // as xarray.open_zarr gives them
};

/// What is done to each element, in this order: re-view (`stored`), mask, scale, offset, time, bool.
struct CfDecoding {
  DataType stored;   // type of the chunk's elements in memory; _Unsigned already applied
  DataType decoded;  // type of the result
  /// Stored values that become missing: one element of `stored` each, native byte order.
  std::vector<std::vector<std::byte>> masked;
  bool has_scale = false, has_offset = false;
  double scale = 1, offset = 0;
  /// The float type in which scale and offset are applied (two roundings, never fused).
  DataType arithmetic;
  enum class Time : std::uint8_t { none, datetime, timedelta } time = Time::none;
  /// result = value * time_numerator / time_denominator + time_origin, in counts of `decoded.unit`.
  std::int64_t time_numerator = 1, time_denominator = 1, time_origin = 0;
  bool to_bool = false;
  /// |S1 arrays whose last dimension is joined into one string: that dimension's length, else 0.
  std::int64_t joined_characters = 0;
  /// Why times stay numbers (a calendar that datetime64 cannot hold), naming units and calendar.
  std::string note;

  /// Stored elements are the result, bit for bit.
  bool is_identity() const;
};

/// Values as stored.
CfDecoding raw_decoding(const ArrayMetadata& array);

/// Values as xarray decodes them. Attributes that make no sense (a scale_factor that is not a number)
/// throw invalid_argument naming the attribute.
CfDecoding cf_decoding(const ArrayMetadata& array, const std::vector<std::string>& dims);

}  // namespace batchfs
