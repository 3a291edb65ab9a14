#pragma once
// CF decoding as xarray does it: how stored values become the values of
// xarray.open_zarr(...).values. Source: xarray.conventions and xarray.coding (variables, times,
// strings), 2026.9; CF Conventions 1.11, sections 2.5.1, 4.4 and 8.1.

#include <complex>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/dataset/cf_time.h"
#include "engine/zarr/array_metadata.h"

namespace batchfs {

enum class Decode : std::uint8_t {
  raw,  // stored values in native byte order, as zarr-python returns them
  cf,   // as xarray.open_zarr returns them
};

/// The operations on each element, in this order: cast to `arithmetic`, mask, scale, offset, time,
/// bool.
struct CfDecoding {
  DataType stored;      // type of the chunk's elements in memory; _Unsigned already applied
  DataType decoded;     // type of the result
  DataType arithmetic;  // the float type that masks, scale and offset work in
  /// Values that become missing, compared after the cast to `arithmetic` (as xarray does).
  std::vector<double> masked;
  std::vector<std::complex<double>> masked_complex;  // the same for complex numbers
  bool has_scale = false, has_offset = false;
  double scale = 1, offset = 0;  // applied with a rounding each, never fused

  enum class Time : std::uint8_t { none, datetime, timedelta } time = Time::none;
  std::vector<std::int64_t> masked_counts;  // integer times are compared as integers
  std::int64_t time_step = 1;               // counts of `decoded.unit` in one stored count
  std::int64_t origin_seconds = 0;  // the reference date: seconds since 1970-01-01, far dates too
  std::int64_t origin_rest = 0;     // and the rest, in counts of `decoded.unit`
  std::int64_t per_second = 1;      // counts of `decoded.unit` in a second
  bool is_by_cftime = false;        // numbers of fractions become dates as cftime computes them

  bool to_bool = false;
  /// |S1 arrays whose last dimension is joined into one string: that dimension's length, else 0.
  std::int64_t joined_characters = 0;
  /// Why times are numbers where xarray has objects of cftime (a calendar that datetime64 cannot
  /// hold, or dates outside of 1677 to 2262): naming units and calendar.
  std::string note;
  /// For such times: the reference from which the numbers count.
  std::optional<TimeReference> counts_from;

  /// Stored elements are the result, bit for bit.
  bool is_identity() const;
};

/// Values as stored.
CfDecoding raw_decoding(const ArrayMetadata& array);

/// Times of a calendar that datetime64 has.
enum class Times : std::uint8_t {
  datetime,  // datetime64[ns]
  numbers,   // numbers, with a note on how dates outside of 1677 to 2262 are decoded
};

/// Values as xarray decodes them. Invalid attributes (a scale_factor that is not a number) throw
/// invalid_argument naming the attribute. `joins_characters`: the last dimension of |S1 arrays is
/// not a dimension but the characters of a string.
CfDecoding cf_decoding(const ArrayMetadata& array, bool joins_characters = true,
                       Times times = Times::datetime);

}  // namespace batchfs
