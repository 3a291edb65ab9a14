#include "engine/store/references/reference_json.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "engine/base/json.h"
#include "engine/base/printable.h"
#include "engine/base/strings.h"
#include "engine/store/references/json_scanner.h"
#include "engine/store/references/url_template.h"

namespace batchfs::references {

namespace {

/// References that one item of `gen` may make.
constexpr std::uint64_t kMaxGenerated = 100'000'000;
constexpr std::size_t kMaxDimensions = 16;
constexpr std::string_view kBase64 = "base64:";

std::string quoted(std::string_view text) {
  constexpr std::size_t kMost = 200;
  return "'" + printable(text.substr(0, kMost)) + (text.size() > kMost ? "..." : "") + "'";
}

constexpr const char* kExpected = "expected [file] or [file, offset, length]";

Error wrong(const std::string& why) { return Error(ErrorCode::invalid_argument, why); }

/// RFC 4648, with or without padding. False for other text.
bool decode_base64(std::string_view text, std::vector<std::byte>& out) {
  static constexpr std::array<std::int8_t, 256> kValues = [] {
    std::array<std::int8_t, 256> values{};
    values.fill(-1);
    constexpr std::string_view kDigits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (std::size_t i = 0; i < kDigits.size(); ++i)
      values[static_cast<unsigned char>(kDigits[i])] = static_cast<std::int8_t>(i);
    return values;
  }();
  for (int i = 0; i < 2 && text.ends_with('='); ++i) text.remove_suffix(1);
  if (text.size() % 4 == 1) return false;
  out.clear();
  std::uint32_t bits = 0;
  int held = 0;
  for (const char c : text) {
    const int value = kValues[static_cast<unsigned char>(c)];
    if (value < 0) return false;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    out.push_back(static_cast<std::byte>(bits >> held & 0xff));
  }
  return true;
}

class Parser {
 public:
  Parser(std::string_view text, std::uint64_t memory)
      : text_(text), memory_(memory), builder_(memory) {}

  std::shared_ptr<const ReferenceTable> run() {
    find_members();
    if (!version_) {
      references(text_, 0);
    } else {
      if (*version_ != 1)
        throw Error(ErrorCode::not_supported,
                    fmt::format("it has version {} of kerchunk's format; this batchfs reads "
                                "versions 0 and 1",
                                *version_));
      if (!templates_.empty()) read_templates();
      if (!gen_.empty()) generate();
      names_.numbers.clear();
      if (!refs_.empty()) references(refs_, static_cast<std::size_t>(refs_.data() - text_.data()));
    }
    return builder_.finish();
  }

 private:
  void find_members() {
    JsonScanner scanner(text_);
    if (scanner.peek() == '[')
      throw Error(
          ErrorCode::not_supported,
          "this is a list of reference sets, as kerchunk's scan_grib gives it; combine them "
          "first (kerchunk.combine.MultiZarrToZarr)");
    scanner.expect('{');
    std::string scratch;
    if (!scanner.take('}')) {
      do {
        const std::string name(key_of(scanner, scratch));
        scanner.expect(':');
        const std::string_view value = scanner.value();
        if (name == "version")
          version_ = version_of(value);
        else if (name == "templates")
          templates_ = value;
        else if (name == "gen")
          gen_ = value;
        else if (name == "refs")
          refs_ = value;
      } while (scanner.take(','));
      scanner.expect('}');
    }
    if (!scanner.at_end()) throw scanner.mistake("text after its end");
    if (!version_ && refs_.starts_with('{'))
      throw Error(ErrorCode::invalid_argument, "'refs' is there without 'version'");
  }

  static std::uint64_t version_of(std::string_view value) {
    if (value.front() < '0' || value.front() > '9')
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the version is {}, not a number", quoted(value)));
    return JsonScanner(value).count();
  }

  void read_templates() {
    const Json json = parse_json(templates_, "", {.unique_keys = true, .memory = memory_});
    for (const auto& [name, text] : JsonRef(json, "templates").members())
      names_.texts[name] = text.string();
  }

  void references(std::string_view text, std::size_t origin) {
    JsonScanner scanner(text, origin);
    scanner.expect('{');
    if (scanner.take('}')) return;
    std::string key_scratch, scratch;
    do {
      const std::string_view key = key_of(scanner, key_scratch);
      scanner.expect(':');
      JsonScanner again = scanner;
      try {
        reference(scanner, key, scratch);
      } catch (const Error& error) {
        if (error.code() == ErrorCode::no_memory) throw;
        again.value();  // throws for invalid JSON
        scanner = again;
        builder_.add_malformed(key, error.why());
      }
    } while (scanner.take(','));
    scanner.expect('}');
  }

  /// Reads a key. For one that UTF-8 cannot hold, returns its text as written and a byte that is
  /// not UTF-8: no reader can request it.
  static std::string_view key_of(JsonScanner& scanner, std::string& scratch) {
    scanner.peek();
    JsonScanner again = scanner;
    try {
      return scanner.string(scratch);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::not_supported) throw;
      const std::size_t begin = again.position();
      again.skip_string();
      scanner = again;
      const std::string_view written = scanner.since(begin);
      scratch.assign(written.substr(1, written.size() - 2));
      return scratch += '\xff';
    }
  }

  void reference(JsonScanner& scanner, std::string_view key, std::string& scratch) {
    switch (scanner.peek()) {
      case '"': {
        const std::string_view text = scanner.string(scratch);
        if (!text.starts_with(kBase64))
          return builder_.add_within(key, std::as_bytes(std::span(text)));
        if (!decode_base64(text.substr(kBase64.size()), decoded_))
          throw wrong(fmt::format("{} is not valid base64", quoted(text)));
        return builder_.add_within(key, decoded_);
      }
      case '{':
        return builder_.add_within(key, std::as_bytes(std::span(scanner.value())));
      case '[':
        return range(scanner, key, scratch);
      default:
        throw wrong(
            fmt::format("{} is neither bytes nor [file, offset, length]", quoted(scanner.value())));
    }
  }

  void range(JsonScanner& scanner, std::string_view key, std::string& scratch) {
    scanner.expect('[');
    if (scanner.peek() == 'n')
      throw Error(ErrorCode::not_supported,
                  "it names no file (null): such a set is for one file that fsspec is given as "
                  "target=");
    if (scanner.peek() != '"') throw wrong(kExpected);
    std::string_view file = scanner.string(scratch);
    std::string rendered;
    if (!names_.texts.empty() && file.find("{{") != std::string_view::npos) {
      rendered = render(file, names_);
      file = rendered;
    }
    if (file.empty()) throw wrong("the file's name is empty");
    if (scanner.take(']')) return builder_.add_whole(key, file);
    if (!scanner.take(',')) throw wrong(kExpected);
    const std::uint64_t offset = count(scanner);
    if (!scanner.take(',')) throw wrong(kExpected);
    const std::uint64_t length = count(scanner);
    if (!scanner.take(']')) throw wrong(kExpected);
    builder_.add_range(key, file, offset, length);
  }

  static std::uint64_t count(JsonScanner& scanner) {
    JsonScanner again = scanner;
    try {
      return scanner.count();
    } catch (const Error&) {
      throw wrong(
          fmt::format("{} is not a whole number from 0 to 2^64 - 1", quoted(again.value())));
    }
  }

  // ---- gen ----
  struct Dimension {
    std::vector<std::int64_t> values;  // else the range
    std::int64_t start = 0, step = 1;
    std::uint64_t count = 0;
    std::int64_t value(std::uint64_t i) const {
      return values.empty() ? start + static_cast<std::int64_t>(i) * step : values[i];
    }
  };

  void generate() {
    const Json json = parse_json(gen_, "", {.unique_keys = true, .memory = memory_});
    for (const JsonRef& item : JsonRef(json, "gen").elements()) {
      item.allow_only({"key", "url", "offset", "length", "dimensions"});
      generate(item);
    }
  }

  void generate(const JsonRef& item) {
    const std::string key = item.at("key").string(), url = item.at("url").string();
    std::optional<std::string> offset, length;
    if (const auto given = item.find("offset")) offset = text_or_number(*given);
    if (const auto given = item.find("length")) length = text_or_number(*given);
    if (offset.has_value() != length.has_value())
      throw item.error("give both offset and length, or neither");
    TemplateNames& names = names_;
    names.numbers.clear();
    std::vector<Dimension> dimensions;
    std::uint64_t total = 1;
    for (const auto& [name, value] : item.at("dimensions").members()) {
      names.numbers.emplace_back(name, 0);
      dimensions.push_back(dimension(value));
      if (dimensions.size() > kMaxDimensions) throw item.error("more than 16 dimensions");
      if (__builtin_mul_overflow(total, dimensions.back().count, &total) || total > kMaxGenerated)
        throw item.error(
            fmt::format("it makes more than {} references", format_count(kMaxGenerated)),
            ErrorCode::not_supported);
    }
    try {
      for (std::uint64_t i = 0; i < total; ++i) {
        std::uint64_t rest = i;
        for (std::size_t d = dimensions.size(); d-- > 0; rest /= dimensions[d].count)
          names.numbers[d].second = dimensions[d].value(rest % dimensions[d].count);
        const std::string file = render(url, names), name = render(key, names);
        if (file.empty()) throw wrong("the file's name is empty");
        if (offset)
          builder_.add_range(name, file, render_count(*offset, names),
                             render_count(*length, names));
        else
          builder_.add_whole(name, file);
      }
    } catch (const Error& error) {
      throw item.error(error.why(), error.code());
    }
  }

  static std::string text_or_number(const JsonRef& value) {
    return value.is_number() ? std::to_string(value.integer(0)) : value.string();
  }

  static Dimension dimension(const JsonRef& json) {
    constexpr std::int64_t kFar = INT64_MAX / 4;
    Dimension made;
    if (json.is_array()) {
      for (const JsonRef& value : json.elements())
        made.values.push_back(value.integer(-kFar, kFar));
      made.count = made.values.size();
      return made;
    }
    json.allow_only({"start", "stop", "step"});
    const std::int64_t stop = json.at("stop").integer(-kFar, kFar);
    if (const auto start = json.find("start")) made.start = start->integer(-kFar, kFar);
    if (const auto step = json.find("step")) made.step = step->integer(-kFar, kFar);
    if (made.step == 0) throw json.error("the step is 0");
    const std::int64_t way = made.step > 0 ? stop - made.start : made.start - stop;
    const std::int64_t step = made.step > 0 ? made.step : -made.step;
    made.count = way > 0 ? static_cast<std::uint64_t>((way - 1) / step + 1) : 0;
    return made;
  }

  const std::string_view text_;
  const std::uint64_t memory_;
  ReferenceTable::Builder builder_;
  std::optional<std::uint64_t> version_;
  std::string_view templates_, gen_, refs_;  // as they are written
  TemplateNames names_;
  std::vector<std::byte> decoded_;
};

}  // namespace

bool may_be_reference_json(std::string_view head) {
  if (head.starts_with("\xef\xbb\xbf")) head.remove_prefix(3);
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (head[first] == '{' || head[first] == '[');
}

std::shared_ptr<const ReferenceTable> parse_reference_json(std::string_view text,
                                                           std::uint64_t memory) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return Parser(text, memory).run();
}

}  // namespace batchfs::references
