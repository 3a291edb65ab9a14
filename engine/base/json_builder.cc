#include "engine/base/json_builder.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

namespace batchfs {

namespace {

using Members = Json::object_t::Container;

/// Objects of up to this many keys are compared pair by pair.
constexpr std::size_t kFewKeys = 8;

/// The indices of members whose key an earlier member has, too, each with the first such member's.
std::vector<std::pair<std::uint32_t, std::uint32_t>> find_duplicates(const Members& members) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> found;
  const auto size = static_cast<std::uint32_t>(members.size());
  if (size <= kFewKeys) {
    for (std::uint32_t i = 1; i < size; ++i)
      for (std::uint32_t first = 0; first < i; ++first)
        if (members[i].first == members[first].first) {
          found.emplace_back(i, first);
          break;
        }
    return found;
  }
  std::vector<std::uint32_t> order(size);
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&members](std::uint32_t a, std::uint32_t b) {
    const int difference = members[a].first.compare(members[b].first);
    return difference != 0 ? difference < 0 : a < b;
  });
  for (std::uint32_t i = 1, first = order[0]; i < size; ++i) {
    if (members[order[i]].first == members[first].first)
      found.emplace_back(order[i], first);
    else
      first = order[i];
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// The parser's events (nlohmann's SAX interface).
class Builder {
 public:
  Builder(const JsonShape& shape, const std::vector<std::uint32_t>& numbers)
      : shape_(shape), numbers_(numbers) {}

  BuiltJson take() { return std::move(built_); }

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(Json::number_integer_t value) { return add(value); }
  bool number_unsigned(Json::number_unsigned_t value) { return add(value); }
  bool number_float(Json::number_float_t value, const std::string&) { return add(value); }
  /// Copies: the parser's buffer has room to spare.
  bool string(const std::string& value) {
    return is_number() ? add(meant_number(value)) : add(value);
  }
  bool binary(Json::binary_t&) { return false; }  // not in texts
  bool key(const std::string& name) {
    is_number();
    key_ = name;
    return true;
  }

  bool start_object(std::size_t) {
    Json& object = add_value(Json::object());
    open_.push_back(&object);
    object.get_ref<Json::object_t&>().reserve(shape_.sizes.at(containers_++));
    return true;
  }
  bool end_object() {
    merge_duplicates(open_.back()->get_ref<Json::object_t&>());
    open_.pop_back();
    return true;
  }
  bool start_array(std::size_t) {
    Json& array = add_value(Json::array());
    open_.push_back(&array);
    array.get_ref<Json::array_t&>().reserve(shape_.sizes.at(containers_++));
    return true;
  }
  bool end_array() {
    open_.pop_back();
    return true;
  }

  template <class Exception>
  bool parse_error(std::size_t, const std::string&, const Exception& error) {
    throw error;
  }

 private:
  /// Counts a string. Does it stand for a number?
  bool is_number() {
    if (next_ == numbers_.size() || numbers_[next_] != strings_++) return false;
    ++next_;
    return true;
  }
  static double meant_number(const std::string& text) {
    if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
    const double infinity = std::numeric_limits<double>::infinity();
    return text.starts_with('-') ? -infinity : infinity;
  }

  template <class Value>
  bool add(Value&& value) {
    add_value(Json(std::forward<Value>(value)));
    return true;
  }

  /// The open containers stay where they are: only the innermost one grows.
  Json& add_value(Json value) {
    if (open_.empty()) return built_.json = std::move(value);
    Json& container = *open_.back();
    if (container.is_array())
      return container.get_ref<Json::array_t&>().emplace_back(std::move(value));
    Members& members = container.get_ref<Json::object_t&>();
    return members.emplace_back(std::move(key_), std::move(value)).second;
  }

  void merge_duplicates(Json::object_t& object) {
    const auto duplicates = find_duplicates(object);
    if (duplicates.empty()) return;
    if (!built_.duplicate)
      built_.duplicate = static_cast<Members&>(object)[duplicates.front().first].first;
    Json::object_t merged;
    merged.reserve(object.size() - duplicates.size());
    Members& members = object;
    for (const auto& [later, first] : duplicates)
      members[first].second = std::move(members[later].second);
    auto skip = duplicates.begin();
    for (std::uint32_t i = 0; i < members.size(); ++i) {
      if (skip != duplicates.end() && skip->first == i)
        ++skip;
      else
        static_cast<Members&>(merged).emplace_back(members[i].first, std::move(members[i].second));
    }
    object.swap(merged);
  }

  const JsonShape& shape_;
  const std::vector<std::uint32_t>& numbers_;
  std::size_t next_ = 0;        // of `numbers_`
  std::uint32_t strings_ = 0;   // begun so far
  std::size_t containers_ = 0;  // opened so far
  std::vector<Json*> open_;     // innermost last
  std::string key_;             // of the value to come
  BuiltJson built_;
};

}  // namespace

BuiltJson build_json(std::string_view text, const JsonShape& shape,
                     const std::vector<std::uint32_t>& numbers) {
  Builder builder(shape, numbers);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

}  // namespace batchfs
