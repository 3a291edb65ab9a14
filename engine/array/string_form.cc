#include "engine/array/string_form.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/strings.h"
#include "engine/base/utf8.h"
#include "engine/codec/typed.h"

namespace batchfs {

namespace {

Error wrong_count(std::uint64_t got, std::int64_t expected) {
  return Error(ErrorCode::corrupt,
               fmt::format("the chunk has {} strings, {} were expected", got, expected));
}

/// A count, then the length and the bytes of each.
class LengthsAndBytes final : public StringForm {
 public:
  explicit LengthsAndBytes(bool is_text) : is_text_(is_text) {}

  std::vector<std::string> decode(std::span<const std::byte> bytes, std::int64_t expected,
                                  std::uint64_t) const override {
    const auto take_number = [&bytes] {
      std::uint32_t number = 0;
      if (bytes.size() < sizeof number)
        throw Error(ErrorCode::corrupt, "the chunk of strings is truncated");
      std::memcpy(&number, bytes.data(), sizeof number);
      bytes = bytes.subspan(sizeof number);
      return number;
    };
    const std::uint32_t count = take_number();
    if (count != expected) throw wrong_count(count, expected);
    std::vector<std::string> strings;
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t length = take_number();
      if (length > bytes.size())
        throw Error(ErrorCode::corrupt, "the chunk of strings is truncated");
      strings.emplace_back(reinterpret_cast<const char*>(bytes.data()), length);
      if (is_text_ && !is_utf8(strings.back()))
        throw Error(ErrorCode::corrupt, "a string of the chunk is not UTF-8");
      bytes = bytes.subspan(length);
    }
    return strings;
  }

 private:
  const bool is_text_;
};

/// numcodecs' json2: a list of the elements, lists in lists for more dimensions, then the data type
/// and the shape.
class JsonList final : public StringForm {
 public:
  std::vector<std::string> decode(std::span<const std::byte> bytes, std::int64_t expected,
                                  std::uint64_t most) const override {
    constexpr std::uint64_t kParsed = 4;
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    Json json;
    try {
      json = parse_json(text, "",
                        {.allow_nan = false, .memory = std::min(kMaxJsonMemory, kParsed * most)});
    } catch (const Error& error) {
      if (error.code() == ErrorCode::no_memory)
        throw Error(ErrorCode::no_memory, "the chunk of JSON: " + error.why());
      throw Error(ErrorCode::corrupt, "the chunk of JSON: " + error.why());
    }
    if (!json.is_array() || json.size() < 2 || !json.back().is_array() ||
        !json[json.size() - 2].is_string())
      throw Error(ErrorCode::corrupt, "the chunk of JSON does not end in a data type and a shape");
    std::vector<std::string> strings;
    for (std::size_t i = 0; i + 2 < json.size(); ++i) take(json[i], strings);
    if (std::cmp_not_equal(strings.size(), expected)) throw wrong_count(strings.size(), expected);
    return strings;
  }

 private:
  static void take(const Json& json, std::vector<std::string>& strings) {
    if (json.is_array()) {
      for (const Json& element : json) take(element, strings);
    } else if (json.is_string()) {
      strings.push_back(json.get<std::string>());
    } else if (json.is_null() || (json.is_number() && json.get<double>() == 0)) {
      strings.emplace_back();  // an element that was never written
    } else {
      throw Error(ErrorCode::not_supported,
                  "an element of the chunk of JSON is not a string; of json2, only strings are "
                  "supported: write the array again with another codec");
    }
  }
};

/// numcodecs' categorize: the code i + 1 stands for the label i, others for the empty string.
class Categories final : public StringForm {
 public:
  explicit Categories(const JsonRef& configuration)
      : type_(make_type(Kind::unsigned_int, 1)), labels_(configuration.at("labels").strings()) {
    if (const auto given = configuration.find("astype")) {
      type_ = parse_numpy_type(given->string());
      if (!type_.is_integer())
        throw given->error("codes that are not whole numbers are not supported",
                           ErrorCode::not_supported);
    }
  }

  std::vector<std::string> decode(std::span<const std::byte> bytes, std::int64_t expected,
                                  std::uint64_t most) const override {
    const std::size_t count = bytes.size() / type_.itemsize;
    if (bytes.size() % type_.itemsize != 0 || std::cmp_not_equal(count, expected))
      throw wrong_count(count, expected);
    std::vector<std::string> strings(count);
    std::uint64_t total = 0;
    with_number(type_, [&](auto zero) {
      using T = decltype(zero);
      for (std::size_t i = 0; i < count; ++i) {
        const T code = read_number<T>(bytes.data() + i * type_.itemsize, type_.big_endian);
        if (code < T{1} || static_cast<double>(code) > static_cast<double>(labels_.size()))
          continue;
        const std::string& label = labels_[static_cast<std::size_t>(code) - 1];
        total += label.size();
        if (total > most)
          throw Error(ErrorCode::no_memory,
                      fmt::format("the labels of a chunk take more than {} of memory; give more "
                                  "with --memory",
                                  format_size(most)));
        strings[i] = label;
      }
    });
    return strings;
  }

 private:
  DataType type_;  // of the codes
  const std::vector<std::string> labels_;
};

}  // namespace

std::unique_ptr<const StringForm> make_string_form(const CodecSpec& codec, Kind kind) {
  const bool is_text = kind == Kind::variable_string;
  if (codec.name == (is_text ? "vlen-utf8" : "vlen-bytes"))
    return std::make_unique<LengthsAndBytes>(is_text);
  if (is_text && codec.name == "json2") return std::make_unique<JsonList>();
  if (is_text && codec.name == "categorize")
    return std::make_unique<Categories>(JsonRef(codec.configuration, codec.name));
  throw Error(ErrorCode::not_supported,
              fmt::format("{} of any length under the codec '{}' are not supported",
                          is_text ? "strings" : "bytes", codec.name));
}

}  // namespace batchfs
