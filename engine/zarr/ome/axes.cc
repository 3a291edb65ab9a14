#include "engine/zarr/ome/axes.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/dims.h"

namespace batchfs {

namespace {

ArrayAxis::Type type_of_name(const std::string& name) {
  using Type = ArrayAxis::Type;
  if (name == "t") return Type::time;
  if (name == "c") return Type::channel;
  return name == "z" || name == "y" || name == "x" ? Type::space : Type::other;
}

ArrayAxis::Type type_of_word(const std::string& word) {
  using Type = ArrayAxis::Type;
  if (word == "space") return Type::space;
  if (word == "time") return Type::time;
  return word == "channel" ? Type::channel : Type::other;
}

std::string short_text(const JsonRef& json) {
  std::string text = json.string();
  if (text.size() > kMaxOmeName)
    throw json.error(fmt::format("{} bytes; at most {} are supported", text.size(), kMaxOmeName),
                     ErrorCode::not_supported);
  return text;
}

/// Optional members may be null.
std::string member_text(const JsonRef& axis, std::string_view key) {
  const auto found = axis.find(key);
  return found && !found->is_null() ? short_text(*found) : std::string();
}

}  // namespace

std::vector<ArrayAxis> parse_axes(const JsonRef& json) {
  if (!json.is_array()) throw json.error("expected a list");
  if (json.value().size() > static_cast<std::size_t>(kMaxArrayDims))
    throw json.error(
        fmt::format("{} axes; at most {} are supported", json.value().size(), kMaxArrayDims),
        ErrorCode::not_supported);
  std::vector<ArrayAxis> axes;
  for (const JsonRef& element : json.elements()) {
    const bool is_object = element.is_object();
    const JsonRef name = is_object ? element.at("name") : element;
    ArrayAxis axis;
    axis.name = short_text(name);
    if (axis.name.empty()) throw name.error("the name is empty");
    if (std::any_of(axes.begin(), axes.end(),
                    [&](const ArrayAxis& other) { return other.name == axis.name; }))
      throw name.error(fmt::format("'{}' is given twice", axis.name));
    axis.type = is_object ? type_of_word(member_text(element, "type")) : type_of_name(axis.name);
    if (is_object) axis.unit = member_text(element, "unit");
    axes.push_back(std::move(axis));
  }
  if (axes.empty()) throw json.error("the list is empty");
  return axes;
}

std::vector<ArrayAxis> five_axes() {
  std::vector<ArrayAxis> axes;
  for (const char* name : {"t", "c", "z", "y", "x"}) {
    ArrayAxis axis;
    axis.name = name;
    axis.type = type_of_name(name);
    axes.push_back(std::move(axis));
  }
  return axes;
}

}  // namespace batchfs
