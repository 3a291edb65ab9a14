#pragma once
// Templates in reference sets: text with {{...}} in it.
//
// kerchunk's specification names jinja2. Supported is the part that sets use: {{name}}, a template
// called with texts, {{f(c='text')}}, and whole-number arithmetic with + - * // % and parentheses.
// All else is refused by name.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace batchfs::references {

/// The meanings of names.
struct TemplateNames {
  /// Templates of the set: those with {{ in them are for calls.
  std::map<std::string, std::string, std::less<>> texts;
  /// Dimensions of a generated reference. Few.
  std::vector<std::pair<std::string, std::int64_t>> numbers;
};

/// Replaces each {{...}}. Throws invalid_argument for names that
/// mean nothing and for arithmetic that overflows, not_supported for the rest of jinja2 and for
/// more than kMaxRendered bytes.
std::string render(std::string_view text, const TemplateNames& names);

/// A whole number of {{...}} or digits, that is not negative. Throws as render().
std::uint64_t render_count(std::string_view text, const TemplateNames& names);

/// Bytes of one URL or key.
inline constexpr std::size_t kMaxRendered = 16 << 10;

}  // namespace batchfs::references
