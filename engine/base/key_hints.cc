#include "engine/base/key_hints.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace batchfs {

std::string_view advice_for(std::string_view word, std::span<const KeyHint> hints) {
  const auto folded = [](char c) {
    return c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  };
  for (const KeyHint& hint : hints)
    if (std::equal(word.begin(), word.end(), hint.key.begin(), hint.key.end(),
                   [&](char a, char b) { return folded(a) == folded(b); }))
      return hint.advice;
  return {};
}

void allow_only(const JsonRef& json, std::initializer_list<std::string_view> known,
                std::span<const KeyHint> hints) {
  for (const auto& [key, value] : json.members()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    if (const std::string_view advice = advice_for(key, hints); !advice.empty())
      throw json.error(fmt::format("unknown key '{}': {}", key, advice));
  }
  json.allow_only(known);
}

}  // namespace batchfs
