// kerchunk's `grib`: one GRIB message, decoded by ecCodes. Source: kerchunk/codecs.py, GRIBCodec.

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstring>
#include <limits>
#include <memory>
#include <string>

#include <eccodes.h>
#include <fmt/format.h>

#include "engine/base/buffer.h"
#include "engine/base/printable.h"
#include "engine/base/shared_library.h"
#include "engine/codec/codecs.h"
#include "engine/codec/optional/grib_message.h"
#include "engine/codec/optional/own_thread.h"
#include "engine/codec/typed.h"

namespace batchfs {

namespace {

/// ecCodes' state for one message, and its definitions of templates, of which each that is met
/// stays.
constexpr std::uint64_t kState = 16 << 20;

/// Messages on which ecCodes failed. Each leaks memory.
std::atomic<int> failures{0};
constexpr int kMaxFailures = 100;

/// Thrown by ecCodes' assertion hook instead of ending the process.
class AssertionFailed : public Error {
 public:
  using Error::Error;
};

void assertion_failed(const char* message) {
  ++failures;
  throw AssertionFailed(ErrorCode::corrupt,
                        fmt::format("ecCodes refuses the GRIB message: {}",
                                    printable(message == nullptr ? "" : message)));
}

void say_nothing(const codes_context*, int, const char*) {}

/// The library's functions.
struct EcCodes {
  decltype(&::codes_handle_new_from_message) open;
  decltype(&::codes_handle_delete) close;
  decltype(&::codes_get_size) size_of;
  decltype(&::codes_get_double_array) doubles;
  decltype(&::codes_get_string) string;
  decltype(&::codes_get_error_message) message;

  EcCodes() {
    const SharedLibrary library("libeccodes.so.0", "the codec 'grib'");
    library.find(open, "codes_handle_new_from_message");
    library.find(close, "codes_handle_delete");
    library.find(size_of, "codes_get_size");
    library.find(doubles, "codes_get_double_array");
    library.find(string, "codes_get_string");
    library.find(message, "codes_get_error_message");
    decltype(&::codes_set_codes_assertion_failed_proc) on_assertion;
    library.find(on_assertion, "codes_set_codes_assertion_failed_proc");
    on_assertion(assertion_failed);
    decltype(&::codes_context_get_default) context;
    library.find(context, "codes_context_get_default");
    decltype(&::codes_context_set_logging_proc) on_log;
    library.find(on_log, "codes_context_set_logging_proc");
    on_log(context(), say_nothing);  // it writes to standard error
  }
};

const EcCodes& eccodes() {
  static const EcCodes functions;
  return functions;
}

/// Calls ecCodes: many builds of it are not thread-safe, and kerchunk calls it one by one, too.
OwnThread& caller() {
  static auto* const thread = new OwnThread;  // waits at the end of the process
  return *thread;
}

class GribCodec final : public Codec {
 public:
  GribCodec(const char* key, DataType type, std::uint64_t points)
      : key_(key), type_(std::move(type)), points_(points) {
    eccodes();  // fails now with any error that it would raise later
  }
  std::string_view name() const override { return "grib"; }
  std::optional<std::uint64_t> encoded_size(std::uint64_t) const override { return std::nullopt; }
  /// Values of 64 bits, a bitmap, and tables of grids.
  std::uint64_t encoded_bound(std::uint64_t) const override {
    return 8 * points_ + points_ / 8 + (1 << 20);
  }
  /// The message with its padding, its values, and three times their size in ecCodes.
  std::uint64_t scratch_bytes(std::uint64_t decoded) const override {
    return encoded_bound(decoded) + 16 * points_ + 4 * 8 * points_ + kState;
  }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    const std::size_t bytes = points_ * type_.itemsize;
    if (out.size() < bytes) throw Error(ErrorCode::corrupt, "the chunk is larger than expected");
    if (in.size() > encoded_bound(bytes))
      throw Error(ErrorCode::corrupt, "the GRIB message is too long");
    const GribMessage message = check_grib_message(in, points_);
    Buffer padded(in.size() + message.padding), values(points_ * sizeof(double));
    std::memcpy(padded.data(), in.data(), in.size());
    std::memset(padded.data() + in.size(), 0, message.padding);
    auto* numbers = reinterpret_cast<double*>(values.data());
    caller().run([&] { read(padded.span().first(in.size()), numbers); });
    with_number(type_, [&](auto zero) {
      using T = decltype(zero);
      for (std::size_t i = 0; i < points_; ++i)
        write_number<T>(out.data() + i * sizeof(T), cast_number<T>(numbers[i]), type_.big_endian);
    });
    return bytes;
  }

 private:
  void read(std::span<const std::byte> message, double* numbers) const {
    const EcCodes& library = eccodes();
    if (failures > kMaxFailures)
      throw Error(ErrorCode::io,
                  "ecCodes has failed at too many GRIB messages and is not called again; find them "
                  "in the log, and start batchfs again");
    codes_handle* handle = library.open(nullptr, message.data(), message.size());
    if (handle == nullptr) throw Error(ErrorCode::corrupt, "ecCodes refuses the GRIB message");
    try {
      read(library, handle, numbers);
    } catch (const AssertionFailed&) {
      throw;  // the handle stays: closing it could fail again
    } catch (...) {
      library.close(handle);
      throw;
    }
    library.close(handle);
  }

  void read(const EcCodes& library, codes_handle* handle, double* numbers) const {
    const auto must = [&library](int status) {
      if (status != CODES_SUCCESS)
        throw Error(ErrorCode::corrupt, fmt::format("ecCodes refuses the GRIB message: {}",
                                                    printable(library.message(status))));
    };
    std::size_t size = 0;
    must(library.size_of(handle, key_, &size));
    if (size != points_)
      throw Error(ErrorCode::corrupt,
                  fmt::format("the GRIB message has {} {}, {} were expected", size, key_, points_));
    must(library.doubles(handle, key_, numbers, &size));
    if (size != points_)
      throw Error(ErrorCode::corrupt, "the GRIB message has fewer values than it says");
    if (std::string_view(key_) != "values") return;
    char text[64] = {};
    std::size_t length = sizeof text;
    must(library.string(handle, "missingValue", text, &length));
    double missing = 0;
    const char* end = text + std::strlen(text);
    if (std::from_chars(text, end, missing).ptr != end || end == text) return;
    std::replace(numbers, numbers + points_, missing, std::numeric_limits<double>::quiet_NaN());
  }

  const char* const key_;
  const DataType type_;
  const std::uint64_t points_;
};

}  // namespace

std::unique_ptr<Codec> make_grib(const JsonRef& configuration, ChunkLayout& layout) {
  const std::string var = configuration.at("var").string();
  const bool is_place = var == "latitude" || var == "longitude";
  const DataType type =
      configured_type(configuration, "dtype", is_place ? float64() : float32(), layout);
  if (!type.is_integer() && type.kind != Kind::floating)
    throw configuration.at("dtype").error("not a type of numbers", ErrorCode::not_supported);
  auto codec =
      std::make_unique<GribCodec>(var == "latitude"    ? "latitudes"
                                  : var == "longitude" ? "longitudes"
                                                       : "values",
                                  type, static_cast<std::uint64_t>(element_count(layout.shape)));
  layout.serialized = true;
  return codec;
}

}  // namespace batchfs
