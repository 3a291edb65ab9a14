#include "fs/control/prometheus.h"

#include <cmath>

#include <fmt/format.h>

namespace batchfs {

namespace {

/// Escapes the characters that a label's value or a help text must not contain.
std::string escaped(std::string_view text, bool quotes) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\\\";
    else if (c == '\n')
      out += "\\n";
    else if (c == '"' && quotes)
      out += "\\\"";
    else
      out += c;
  }
  return out;
}

/// Counts are written out in full, whatever their size.
std::string number(double value) {
  const bool whole = std::floor(value) == value && std::fabs(value) < 9e15;
  return whole ? fmt::format("{}", static_cast<std::int64_t>(value)) : fmt::format("{}", value);
}

}  // namespace

void PrometheusText::begin(const std::string& name, std::string_view help, std::string_view type) {
  text_ += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, escaped(help, false), type);
}

void PrometheusText::sample(const std::string& name, const Labels& labels, double value) {
  std::string list;
  for (const auto& [label, text] : labels)
    list += fmt::format("{}{}=\"{}\"", list.empty() ? "" : ",", label, escaped(text, true));
  text_ += fmt::format("{}{} {}\n", name, list.empty() ? "" : "{" + list + "}", number(value));
}

void PrometheusText::counter(std::string_view name, std::string_view help,
                             std::span<const Sample> samples) {
  const std::string full = fmt::format("batchfs_{}_total", name);
  begin(full, help, "counter");
  for (const Sample& s : samples) sample(full, s.labels, s.value);
}

void PrometheusText::counter(std::string_view name, std::string_view help, double value) {
  const Sample one{{}, value};
  counter(name, help, std::span(&one, 1));
}

void PrometheusText::gauge(std::string_view name, std::string_view help, double value) {
  const std::string full = fmt::format("batchfs_{}", name);
  begin(full, help, "gauge");
  sample(full, {}, value);
}

void PrometheusText::histogram(std::string_view name, std::string_view help,
                               const LatencyHistogram& waits) {
  const std::string full = fmt::format("batchfs_{}", name);
  begin(full, help, "histogram");
  // Edges of the histogram: 1 and 3 of each power of ten.
  for (std::uint64_t unit = 100'000; unit <= 10'000'000'000; unit *= 10)
    for (const std::uint64_t edge : {unit, 3 * unit})
      sample(full + "_bucket", {{"le", number(static_cast<double>(edge) / 1e9)}},
             static_cast<double>(waits.at_most(edge)));
  sample(full + "_bucket", {{"le", "+Inf"}}, static_cast<double>(waits.count()));
  sample(full + "_sum", {}, static_cast<double>(waits.sum()) / 1e9);
  sample(full + "_count", {}, static_cast<double>(waits.count()));
}

std::string prometheus_name(std::string_view counter) {
  const std::size_t at = counter.find("bytes_");
  if (at == std::string_view::npos) return std::string(counter);
  return std::string(counter.substr(0, at)) + std::string(counter.substr(at + 6)) + "_bytes";
}

}  // namespace batchfs
