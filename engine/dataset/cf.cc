#include "engine/dataset/cf.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "engine/base/strings.h"

namespace batchfs {

namespace {

/// Returns an attribute's number. xarray reads v3 float fills as base64 of a little-endian double;
/// a plain number, which it refuses, is taken literally.
std::optional<double> attribute_number(const Json& value, const DataType& type) {
  if (value.is_number()) return value.get<double>();
  if (value.is_boolean()) return value.get<bool>() ? 1.0 : 0.0;
  if (!value.is_string()) return std::nullopt;
  const std::string text = value.get<std::string>();
  if (text == "NaN" || text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  if (type.kind == Kind::floating && text.size() == 12) {
    DataType raw = make_type(Kind::raw, 8);
    try {
      const std::vector<std::byte> bytes = parse_fill_value(raw, JsonRef(value, "_FillValue"));
      double number;
      std::memcpy(&number, bytes.data(), sizeof number);
      return number;
    } catch (const Error&) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

/// The same without rounding, for integers; those past 2^63 as the int64 of their bits.
std::optional<std::int64_t> attribute_count(const Json& value) {
  if (value.is_number_unsigned()) return static_cast<std::int64_t>(value.get<std::uint64_t>());
  if (value.is_number_integer()) return value.get<std::int64_t>();
  const std::optional<double> number = attribute_number(value, {});
  if (!number || std::floor(*number) != *number || std::fabs(*number) >= 0x1p63)
    return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

/// xarray takes the fill value of v2 metadata as the one that marks missing values. In an OME-Zarr
/// image it is the value of unwritten chunks, and 0 is a valid value.
bool fill_value_is_missing(const ArrayMetadata& array) {
  return array.zarr_format == 2 && !array.fill_value_json.is_null() && array.axes.empty();
}

/// The fill value of v2 metadata as a number.
std::optional<double> stored_number(const ArrayMetadata& array) {
  const DataType& type = array.type;
  const std::byte* p = array.fill_value.data();
  auto as = [p](auto zero) {
    decltype(zero) v;
    std::memcpy(&v, p, sizeof v);
    return static_cast<double>(v);
  };
  switch (type.kind) {
    case Kind::signed_int:
      return type.itemsize == 1   ? as(std::int8_t{})
             : type.itemsize == 2 ? as(std::int16_t{})
             : type.itemsize == 4 ? as(std::int32_t{})
                                  : as(std::int64_t{});
    case Kind::unsigned_int:
      return type.itemsize == 1   ? as(std::uint8_t{})
             : type.itemsize == 2 ? as(std::uint16_t{})
             : type.itemsize == 4 ? as(std::uint32_t{})
                                  : as(std::uint64_t{});
    case Kind::floating:
      return type.itemsize == 2 ? as(_Float16{}) : type.itemsize == 4 ? as(float{}) : as(double{});
    default:
      return std::nullopt;
  }
}

std::optional<std::int64_t> stored_count(const ArrayMetadata& array) {
  const DataType& type = array.type;
  if (!type.is_integer() || array.fill_value.size() != type.itemsize) return std::nullopt;
  std::int64_t count = 0;
  std::memcpy(&count, array.fill_value.data(), type.itemsize);
  const int unused = 64 - 8 * static_cast<int>(type.itemsize);
  if (type.kind == Kind::signed_int)
    count = static_cast<std::int64_t>(static_cast<std::uint64_t>(count) << unused) >> unused;
  return count;
}

/// The values of an array of complex numbers that decode as missing.
std::vector<std::complex<double>> masked_complex_numbers(const ArrayMetadata& array) {
  std::vector<std::complex<double>> masked;
  const auto add = [&masked](double real, double imaginary) {
    if (!std::isnan(real) && !std::isnan(imaginary)) masked.emplace_back(real, imaginary);
  };
  const DataType part = make_type(Kind::floating, array.type.itemsize / 2);
  const auto fill = array.attributes.find("_FillValue");
  if (fill_value_is_missing(array)) {
    const std::byte* p = array.fill_value.data();
    const auto as = [p](auto zero) {
      decltype(zero) parts[2];
      std::memcpy(parts, p, sizeof parts);
      return std::complex<double>(parts[0], parts[1]);
    };
    const std::complex<double> value = part.itemsize == 4 ? as(float{}) : as(double{});
    add(value.real(), value.imag());
  } else if (fill != array.attributes.end() && fill->is_array() && fill->size() == 2) {
    const auto real = attribute_number((*fill)[0], part),
               imaginary = attribute_number((*fill)[1], part);
    if (real && imaginary) add(*real, *imaginary);
  }
  if (const auto missing = array.attributes.find("missing_value");
      missing != array.attributes.end())
    for (const Json& value : missing->is_array() ? *missing : Json::array({*missing}))
      if (value.is_number()) add(value.get<double>(), 0);
  return masked;
}

/// scale_factor or add_offset: a number, or a list of one.
std::optional<double> packing_number(const Json& attributes, const char* name, bool& is_integer) {
  const auto it = attributes.find(name);
  if (it == attributes.end() || it->is_null()) return std::nullopt;
  const Json& value = it->is_array() && it->size() == 1 ? it->front() : *it;
  if (!value.is_number())
    throw Error(ErrorCode::invalid_argument, fmt::format("the attribute {} is not a number", name));
  // xarray's products with a list keep fractions.
  is_integer = value.is_number_integer() && !it->is_array();
  return value.get<double>();
}

std::string text_attribute(const Json& attributes, const char* name) {
  const auto it = attributes.find(name);
  return it != attributes.end() && it->is_string() ? it->get<std::string>() : std::string();
}

/// xarray's _choose_float_dtype for attributes from JSON, whose floats are 64 bits wide.
DataType choose_float(const DataType& stored, const CfDecoding& cf, bool scale_is_integer) {
  if (cf.has_offset) return float64();
  if (cf.has_scale) return scale_is_integer ? make_type(Kind::signed_int, 8) : float64();
  if (stored.is_float() && stored.itemsize <= 4) return float32();
  if (stored.is_integer() && stored.itemsize <= 2) return float32();
  return float64();
}

/// numpy's promotion when a value may be missing.
DataType promote(const DataType& stored) {
  if (stored.is_integer()) return stored.itemsize <= 2 ? float32() : float64();
  return stored;
}

/// Sets cf.time and the fields that belong to it from the `units` attribute. False when the units
/// are not units of time.
bool decode_time(const Json& attributes, CfDecoding& cf, Times times) {
  const std::string units = text_attribute(attributes, "units");
  if (units.empty()) return false;
  if (const auto step = time_unit_nanoseconds(units)) {
    // A duration is one only if its dtype says so (xarray's default since 2025.?).
    const std::string dtype = text_attribute(attributes, "dtype");
    if (!dtype.starts_with("timedelta64[")) return false;
    const std::string unit = dtype.substr(12, dtype.size() - 13);
    const auto unit_ns = resolution_nanoseconds(unit);
    if (!unit_ns || *step % *unit_ns != 0) return false;
    cf.time = CfDecoding::Time::timedelta;
    cf.decoded = make_type(Kind::timedelta, 8);
    cf.decoded.unit = unit;
    cf.time_step = *step / *unit_ns;
    cf.per_second = 1'000'000'000 / *unit_ns;
    return true;
  }
  if (units.find("since") == std::string::npos) return false;
  const std::string calendar = to_lower(text_attribute(attributes, "calendar"));
  const auto reference = parse_time_units(units, calendar);
  const bool held = reference && is_gregorian(reference->calendar);
  if (!held || times == Times::numbers) {
    if (reference || is_time_units(units))
      cf.note = fmt::format("times in units '{}', calendar '{}', {}", units,
                            calendar.empty() ? "standard" : calendar,
                            held ? "outside of what datetime64[ns] holds (1677 to 2262)"
                                 : "which datetime64 cannot hold");
    else
      cf.note = fmt::format("times in units '{}', calendar '{}', which are not understood", units,
                            calendar.empty() ? "standard" : calendar);
    cf.counts_from = reference;
    return false;
  }
  cf.time = CfDecoding::Time::datetime;
  cf.decoded = datetime_ns();
  cf.time_step = reference->step_ns;
  cf.origin_seconds = reference->seconds;
  cf.origin_rest = reference->nanoseconds;
  cf.per_second = 1'000'000'000;
  cf.is_by_cftime = reference->is_for_cftime;
  return true;
}

}  // namespace

bool CfDecoding::is_identity() const {
  return stored == decoded && masked.empty() && masked_complex.empty() && !has_scale &&
         !has_offset && time == Time::none && !to_bool;
}

CfDecoding raw_decoding(const ArrayMetadata& array) {
  CfDecoding cf;
  cf.stored = array.type;
  cf.stored.big_endian = false;
  cf.decoded = cf.arithmetic = cf.stored;
  return cf;
}

CfDecoding cf_decoding(const ArrayMetadata& array, bool joins_characters, Times times) {
  CfDecoding cf = raw_decoding(array);
  const Json& attributes = array.attributes;
  DataType& stored = cf.stored;

  // Times that are stored as such are passed on, regardless of the attributes.
  if (stored.kind == Kind::datetime || stored.kind == Kind::timedelta) return cf;
  if (stored.kind == Kind::bytes && stored.itemsize == 1 && array.shape.size() > 0 &&
      joins_characters) {
    if (array.shape.back() > 0 && array.shape.back() <= (1 << 20)) {
      cf.joined_characters = array.shape.back();
      cf.decoded.itemsize = static_cast<std::uint32_t>(cf.joined_characters);
    }
    return cf;
  }
  if (stored.kind == Kind::complex) {
    cf.masked_complex = masked_complex_numbers(array);
    return cf;
  }
  const bool numeric = stored.is_integer() || stored.is_float();
  if (!numeric) return cf;

  const std::string unsigned_attribute = text_attribute(attributes, "_Unsigned");
  const bool to_unsigned = stored.kind == Kind::signed_int && unsigned_attribute == "true";
  const bool to_signed = stored.kind == Kind::unsigned_int && unsigned_attribute == "false";
  if (to_unsigned) stored.kind = Kind::unsigned_int;
  if (to_signed) stored.kind = Kind::signed_int;
  cf.decoded = cf.arithmetic = stored;

  // Missing values.
  bool any_fill = false;
  std::vector<std::int64_t> counts;  // the same, exactly
  auto add_fill = [&](std::optional<double> value, std::optional<std::int64_t> count,
                      bool is_fill_value) {
    if (!value) return;
    if (count) counts.push_back(*count);
    if (std::isnan(*value)) {
      any_fill = any_fill || stored.is_float();  // on integers it is dropped
      return;
    }
    if (is_fill_value && (to_unsigned || to_signed)) {
      const double range = std::ldexp(1.0, static_cast<int>(8 * stored.itemsize));
      if (to_unsigned && *value < 0) *value += range;
      if (to_signed && *value >= range / 2) *value -= range;
    }
    any_fill = true;
    if (std::find(cf.masked.begin(), cf.masked.end(), *value) == cf.masked.end())
      cf.masked.push_back(*value);
  };
  const auto fill = attributes.find("_FillValue");
  if (fill_value_is_missing(array)) {
    add_fill(stored_number(array), stored_count(array),
             true);  // Zarr's fill value stands for netCDF's
  } else if (fill != attributes.end()) {
    const Json& value = fill->is_array() && fill->size() == 1 ? fill->front() : *fill;
    add_fill(attribute_number(value, stored), attribute_count(value), true);
  }
  if (const auto missing = attributes.find("missing_value"); missing != attributes.end()) {
    auto add = [&](const Json& value) {
      add_fill(attribute_number(value, stored), attribute_count(value), false);
    };
    if (missing->is_array())
      std::for_each(missing->begin(), missing->end(), add);
    else
      add(*missing);
  }

  bool scale_is_integer = false, offset_is_integer = false;
  const auto scale = packing_number(attributes, "scale_factor", scale_is_integer);
  const auto offset = packing_number(attributes, "add_offset", offset_is_integer);
  cf.has_scale = scale.has_value();
  cf.has_offset = offset.has_value();
  cf.scale = scale.value_or(1);
  cf.offset = offset.value_or(0);
  const bool packed = cf.has_scale || cf.has_offset;

  CfDecoding timed = cf;
  const bool is_time = decode_time(attributes, timed, times);
  if (packed) {
    // With a fill value of NaN alone xarray keeps the stored float type.
    const bool keeps_type = any_fill && cf.masked.empty() && !is_time;
    cf.arithmetic = keeps_type ? stored : choose_float(stored, cf, scale_is_integer);
    if (cf.arithmetic.is_integer() && !cf.masked.empty()) cf.arithmetic = float64();
  } else if (!cf.masked.empty()) {
    cf.arithmetic = promote(stored);
  }
  cf.decoded = cf.arithmetic;
  cf.note = timed.note;
  cf.counts_from = timed.counts_from;
  if (is_time) {
    cf.time = timed.time;
    cf.decoded = timed.decoded;
    cf.time_step = timed.time_step;
    cf.origin_seconds = timed.origin_seconds;
    cf.origin_rest = timed.origin_rest;
    cf.per_second = timed.per_second;
    cf.is_by_cftime = timed.is_by_cftime;
    if (!packed && stored.is_integer()) {
      cf.arithmetic = stored;
      cf.masked_counts = std::move(counts);
      cf.masked.clear();
    }
  }
  if (text_attribute(attributes, "dtype") == "bool") {
    cf.to_bool = true;
    cf.decoded = make_type(Kind::boolean, 1);
  }
  return cf;
}

}  // namespace batchfs
