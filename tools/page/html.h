#pragma once
// Common parts of batchfs's HTML pages. A page is one file: it embeds its pictures, has no scripts,
// and its policy forbids loading anything.

#include <cstddef>
#include <span>
#include <string>

namespace batchfs {

/// Escapes text and quoted attributes of HTML. Control characters and other harmful ones become
/// escapes, see printable().
std::string html(const std::string& text);

/// Limits of names and texts on pages, in columns.
inline constexpr std::size_t kMaxShownName = 200, kMaxShownText = 300;

/// html() of shortened().
std::string html_cut(const std::string& text, std::size_t columns);

/// Begins a page: everything before the contents of <body>. Escapes `title`; `style` is CSS after
/// the common one, which defines the colours --text, --back, --soft, --line.
std::string page_begin(const std::string& title, const std::string& style);
std::string page_end();

/// The current time, in the format of pages.
std::string local_time();

/// A picture as a URL: "data:image/png;base64,...".
std::string png_url(std::span<const std::byte> png);

/// A table row with a name and a value, both escaped here.
std::string fact_row(const std::string& name, const std::string& value);

}  // namespace batchfs
