#include "engine/base/json_limits.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/base/limits.h"
#include "engine/base/strings.h"

namespace batchfs {

namespace {

constexpr std::uint64_t kAllocation = 16;  // the allocator's overhead for each block
constexpr std::uint64_t kValue = sizeof(Json);
constexpr std::uint64_t kMember = sizeof(Json::object_t::value_type);
constexpr std::uint64_t kContainer =
    sizeof(Json::object_t) + 2 * kAllocation + 3 * sizeof(std::uint32_t);
constexpr std::uint64_t kString = sizeof(std::string) + kAllocation;
constexpr std::size_t kShortString = 15;  // bytes that std::string holds without a block of its own
/// The parser keeps the token both as written and decoded, in buffers that double as they grow.
constexpr std::uint64_t kTokenBuffers = 4;

class Scan {
 public:
  Scan(std::string_view text, std::uint64_t memory, const std::string& where)
      : text_(text), limit_(memory), where_(where) {}

  JsonShape run() {
    claim(kValue);
    for (std::size_t i = 0; i < text_.size();) {
      switch (const char c = text_[i]) {
        case '"':
          i = string(i);
          break;
        case '[':
        case '{':
          open(c == '{');
          ++i;
          break;
        case ']':
        case '}':
          close();
          ++i;
          break;
        case ',':
          expects_ = true;
          ++i;
          break;
        case ':':
          is_key_ = false;
          ++i;
          break;
        case ' ':
        case '\t':
        case '\r':
        case '\n':
          i = blanks(i);
          break;
        default:
          i = word(i);
      }
    }
    claim(kTokenBuffers * longest_);
    if (has_nan_) claim(2 * text_.size());  // a copy with these quoted, at most 5/3 as long
    return std::move(shape_);
  }

 private:
  struct Level {
    std::size_t number;  // in shape_.sizes
    bool is_object;
  };

  void open(bool is_object) {
    value();
    if (depth_ == kMaxJsonDepth)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the JSON is nested deeper than {} levels", kMaxJsonDepth), where_);
    levels_[depth_++] = {shape_.sizes.size(), is_object};
    claim(kContainer);
    shape_.sizes.push_back(0);
    expects_ = true;
  }

  void close() {
    if (depth_ > 0) --depth_;
    expects_ = false;
  }

  /// A value begins: the first of its container, or the next after a comma.
  void value() {
    if (depth_ == 0 || !expects_) return;
    expects_ = false;
    const Level& level = levels_[depth_ - 1];
    std::uint32_t& size = shape_.sizes[level.number];
    if (++size > kMaxJsonKeys && level.is_object)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("an object of the JSON has more than {} keys", kMaxJsonKeys), where_);
    claim(level.is_object ? kMember : kValue);
    is_key_ = level.is_object;
  }

  std::size_t string(std::size_t begin) {
    value();
    std::size_t end = begin + 1;
    while (end < text_.size() && text_[end] != '"') end += text_[end] == '\\' ? 2 : 1;
    end = std::min(end, text_.size());
    const std::size_t length = end - begin - 1;
    if (length > kMaxJsonString)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("a string of the JSON is longer than {}", format_size(kMaxJsonString)),
          where_);
    longest_ = std::max(longest_, length);
    if (!is_key_) claim(kString);
    if (length > kShortString) claim(length + 1 + kAllocation);
    return std::min(end + 1, text_.size());
  }

  /// The parser keeps them as a token, too.
  std::size_t blanks(std::size_t begin) {
    const std::size_t end = std::min(text_.find_first_not_of(" \t\r\n", begin), text_.size());
    longest_ = std::max(longest_, end - begin);
    return end;
  }

  /// A number or a literal.
  std::size_t word(std::size_t begin) {
    value();
    std::size_t end = begin + 1;
    while (end < text_.size() && std::strchr("\",:[]{} \t\r\n", text_[end]) == nullptr) ++end;
    if (end - begin > kMaxJsonNumber)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("a number of the JSON has more than {} characters", kMaxJsonNumber),
                  where_);
    if (text_[begin] == 'N' || text_[begin] == 'I' ||
        text_.substr(begin, 2) == "-I") {  // a string, until the parser has it
      claim(kString);
      has_nan_ = true;
    }
    return end;
  }

  void claim(std::uint64_t bytes) {
    shape_.memory += bytes;
    if (shape_.memory > limit_)
      throw Error(ErrorCode::no_memory,
                  fmt::format("parsing this JSON of {} takes more than {} of memory",
                              format_size(text_.size()), format_size(limit_)),
                  where_);
  }

  const std::string_view text_;
  const std::uint64_t limit_;
  const std::string& where_;
  JsonShape shape_;
  std::array<Level, kMaxJsonDepth> levels_{};
  int depth_ = 0;
  bool expects_ = false;  // a value of the innermost container, after its bracket or a comma
  bool is_key_ = false;
  bool has_nan_ = false;
  std::size_t longest_ = 0;
};

}  // namespace

std::uint64_t json_memory(const Json& value) {
  const auto text = [](const std::string& string) {
    return string.capacity() > kShortString ? string.capacity() + 1 + kAllocation : 0;
  };
  std::uint64_t bytes = kValue;
  if (value.is_string()) {
    bytes += kString + text(value.get_ref<const std::string&>());
  } else if (value.is_array()) {
    bytes += kContainer;
    for (const Json& element : value) bytes += json_memory(element);
  } else if (value.is_object()) {
    bytes += kContainer;
    for (const auto& [key, member] : value.get_ref<const Json::object_t&>())
      bytes += sizeof(std::string) + text(key) + json_memory(member);
  }
  return bytes;
}

JsonShape check_json_limits(std::string_view text, std::uint64_t memory, const std::string& where) {
  return Scan(text, memory, where).run();
}

}  // namespace batchfs
