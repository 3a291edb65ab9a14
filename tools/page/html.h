#pragma once
// What the HTML pages of batchfs have in common. A page is one file: its pictures are inside, it
// has no scripts, and its policy forbids to load anything.

#include <cstddef>
#include <span>
#include <string>

namespace batchfs {

/// For text and quoted attributes of HTML. Control characters and other harmful ones become
/// escapes, see printable().
std::string html(const std::string& text);

/// Columns of names and of texts that pages show.
inline constexpr std::size_t kMaxShownName = 200, kMaxShownText = 300;

/// As html(), of shortened().
std::string html_cut(const std::string& text, std::size_t columns);

/// Begins a page: all before what <body> holds. `title` is escaped here; `style` is CSS that
/// follows the common one, which defines the colours --text, --back, --soft, --line.
std::string page_begin(const std::string& title, const std::string& style);
std::string page_end();

/// Now, as pages say when they were made.
std::string local_time();

/// A picture as a URL: "data:image/png;base64,...".
std::string png_url(std::span<const std::byte> png);

/// A row of a table: a name and a value, both escaped here.
std::string fact_row(const std::string& name, const std::string& value);

}  // namespace batchfs
