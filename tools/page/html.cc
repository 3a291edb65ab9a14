#include "tools/page/html.h"

#include <ctime>

#include <openssl/evp.h>

#include "engine/base/printable.h"
#include "tools/cli/text_layout.h"

namespace batchfs {

namespace {

constexpr const char* kCommonStyle = R"(
:root { color-scheme: light dark; --text: #1d2733; --back: #fff; --soft: #5d6874; --line: #d5dbe1; }
@media screen and (prefers-color-scheme: dark) { :root { --text: #e4e8ec; --back: #14181d; --soft: #93a0ad; --line: #333c46; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back); max-width: 1080px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; margin-bottom: 0; } h2 { font-size: 1.15em; margin: 1.8em 0 .3em; }
p.of { color: var(--soft); margin-top: .2em; } li { margin: .4em 0; }
table { border-collapse: collapse; } td, th { padding: .2em .9em .2em 0; text-align: left; border-bottom: 1px solid var(--line); }
td.n, th.n { text-align: right; white-space: nowrap; } h1, p.of { overflow-wrap: anywhere; }
.wide { overflow-x: auto; } svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--soft); font-size: 12px; } .axis { stroke: var(--line); }
@media print { :root { color-scheme: light; } body { max-width: none; margin: 0; } h2 { break-after: avoid; } .wide { overflow: visible; break-inside: avoid; } }
)";

}  // namespace

std::string html(const std::string& text) {
  std::string out;
  for (const char c : printable(text, LineBreaks::keep)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string html_cut(const std::string& text, std::size_t columns) {
  return html(shortened(text, columns));
}

std::string page_begin(const std::string& title, const std::string& style) {
  return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src "
         "data:; style-src 'unsafe-inline'\">"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>" +
         html(title) + "</title>\n<style>" + kCommonStyle + style + "</style></head><body>\n";
}

std::string local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::localtime_r(&now, &parts);
  char text[64];
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %Z", &parts));
}

std::string page_end() { return "</body></html>\n"; }

std::string png_url(std::span<const std::byte> png) {
  std::string encoded((png.size() + 2) / 3 * 4 + 1, '\0');  // EVP ends it with a NUL
  encoded.resize(static_cast<std::size_t>(EVP_EncodeBlock(
      reinterpret_cast<unsigned char*>(encoded.data()),
      reinterpret_cast<const unsigned char*>(png.data()), static_cast<int>(png.size()))));
  return "data:image/png;base64," + encoded;
}

std::string fact_row(const std::string& name, const std::string& value) {
  return "<tr><th scope=\"row\">" + html(name) + "</th><td>" + html(value) + "</td></tr>\n";
}

}  // namespace batchfs
