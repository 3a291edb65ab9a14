#include "tools/show/variable_section.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "engine/base/counted.h"
#include "engine/base/strings.h"
#include "fs/formats/png.h"
#include "fs/formats/preview.h"
#include "tools/cli/text_layout.h"
#include "tools/page/axis_ticks.h"
#include "tools/page/html.h"
#include "tools/page/number_text.h"
#include "tools/page/svg.h"

namespace batchfs {

namespace {

constexpr double kSectionWidth = 720;

std::string with_units(const std::string& text, const std::string& units) {
  return units.empty() ? text : text + " " + units;
}

/// From the least to the most, as colours stand for them.
std::string colour_bar(const ColourScale& scale, const std::string& units) {
  constexpr double kTop = 4, kHeight = 14, kLeft = 10, kInside = kSectionWidth - 2 * kLeft;
  constexpr int kSteps = 60;
  std::string inside;
  for (int i = 0; i < kSteps; ++i) {
    const auto& colour = preview_palette()[scale.at((i + 0.5) / kSteps)];
    inside += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" fill=\"#{:02x}{:02x}{:02x}\"/>",
        kLeft + kInside * i / kSteps, kTop, kInside / kSteps + 0.5, kHeight, colour[0], colour[1],
        colour[2]);
  }
  const double middle = scale.low / 2 + scale.high / 2;
  inside += svg_text(kLeft, kTop + kHeight + 16, value_text(scale.low)) +
            svg_text(kSectionWidth / 2, kTop + kHeight + 16,
                     scale.high > scale.low ? value_text(middle) : "", "middle") +
            svg_text(kSectionWidth - kLeft, kTop + kHeight + 16, value_text(scale.high), "end");
  return svg_picture(
      "Colours from " + value_text(scale.low) + " to " + with_units(value_text(scale.high), units),
      kSectionWidth, kTop + kHeight + 22, inside);
}

std::string ends_text(const ShownAxis& axis, const char* from, const char* to) {
  return fmt::format("{} from {} ({}) to {} ({}){}", axis.name, axis.first, from, axis.last, to,
                     axis.units.empty() ? "" : ", " + axis.units);
}

std::string map_figure(const ShownVariable& variable, CoastSymbols& coasts) {
  const auto [width, height] = picture_size(variable.across, variable.down);
  const std::string name = fmt::format(
      "{} of {}{}: {}", variable.coast.empty() ? "Picture" : "Map", variable.path,
      variable.position.empty() ? "" : " at " + variable.position,
      variable.scale ? fmt::format("values from {} to {}", value_text(variable.summary.min),
                                   with_units(value_text(variable.summary.max), variable.units))
                     : variable.title);
  std::string inside = fmt::format(
      "<image width=\"{0:.0f}\" height=\"{1:.0f}\" preserveAspectRatio=\"none\" href=\"{2}\"{3}/>",
      width, height, png_url(variable.png),
      static_cast<double>(variable.across) < width / 2 ? " style=\"image-rendering: pixelated\""
                                                       : "");
  if (!variable.coast.empty())
    for (const char* kind : {"halo", "coast"})  // lines that are seen on dark and on light
      inside += fmt::format("<use href=\"#{}\" class=\"{}\"/>", coasts.id_of(variable.coast), kind);
  std::string figure = fmt::format(
      "<figure><svg class=\"map\" viewBox=\"0 0 {:.0f} {:.0f}\" style=\"max-width: {:.0f}px\" "
      "role=\"img\" aria-label=\"{}\">{}</svg>\n",
      width, height, width, html_cut(name, kMaxShownText), inside);
  if (variable.scale) figure += colour_bar(*variable.scale, variable.units);
  std::string caption = with_units(variable.position, "");
  if (!variable.region.empty()) caption += (caption.empty() ? "" : "; ") + variable.region;
  caption += (caption.empty() ? "" : "; ") + ends_text(variable.lines, "top", "bottom") + "; " +
             ends_text(variable.columns, "left", "right");
  return figure + "<figcaption>" + html_cut(caption, 4 * kMaxShownText) +
         "</figcaption></figure>\n";
}

std::string facts_table(const ShownVariable& variable) {
  const SampleSummary& s = variable.summary;
  const bool whole = variable.is_whole();
  std::string rows =
      fact_row(whole ? "Read" : "Sample",
               fmt::format("{} in {}, {} decoded", counted(s.count, "value"),
                           counted(variable.chunks, "chunk"), format_size(variable.bytes)));
  rows += fact_row("Missing", share_text(s.missing, s.count));
  if (s.infinite > 0) rows += fact_row("Infinite", share_text(s.infinite, s.count));
  if (s.finite() > 0) {
    rows += fact_row("Range",
                     value_text(s.min) + " to " + with_units(value_text(s.max), variable.units));
    rows += fact_row("Mean", with_units(value_text(s.mean), variable.units));
  }
  return fmt::format("<div class=\"wide\"><table class=\"facts\"><caption>{}</caption>",
                     whole ? "Of all values" : "Of the sample, not of the whole array") +
         rows + "</table></div>\n";
}

/// A dimension in each row: how it is cut into chunks.
std::string dims_table(const InspectedArray& array) {
  const Dims& shape = array.metadata->shape;
  const bool has_chunks = array.grid.chunk_shape().size() == shape.size();
  if (shape.empty() || !has_chunks) return {};
  std::string table =
      "<div class=\"wide\"><table><caption>Dimensions and chunks</caption><thead><tr><th "
      "scope=\"col\">Dimension</th><th scope=\"col\" class=\"n\">Length</th><th scope=\"col\" "
      "class=\"n\">In a chunk</th><th scope=\"col\" class=\"n\">Chunks</th>";
  if (array.sharded) table += "<th scope=\"col\" class=\"n\">In a shard</th>";
  table += "</tr></thead><tbody>\n";
  const auto number = [](std::int64_t value) {
    return "<td class=\"n\">" + format_count(static_cast<std::uint64_t>(value)) + "</td>";
  };
  for (std::size_t d = 0; d < shape.size(); ++d) {
    table += "<tr><th scope=\"row\">" + html_cut(array.dims[d], kMaxShownName) + "</th>" +
             number(shape[d]) + number(array.grid.chunk_shape()[d]) +
             number(array.grid.counts()[d]);
    if (array.sharded) table += number(array.metadata->chunk_shape[d]);
    table += "</tr>\n";
  }
  return table + "</tbody></table></div>\n";
}

std::string chunks_part(const ShownVariable& variable) {
  const InspectedArray& array = *variable.array;
  const ChunkPresence& presence = variable.presence;
  std::string out = dims_table(array);
  if (array.dims.empty() || presence.objects == 0) return out;
  const char* noun = array.sharded ? "shard" : "chunk";
  if (!presence.is_known)
    return out + "<p class=\"of\">" +
           html(fmt::format("Not known which of the {} are stored: {}.",
                            counted(presence.objects, noun), presence.why_unknown)) +
           "</p>\n";
  std::vector<std::string> others;
  for (std::size_t d = 0; d < array.dims.size(); ++d)
    if (d != presence.column_dim) others.push_back(array.dims[d]);
  constexpr std::size_t kMaxDims = 60;
  return out + presence_picture(presence, shortened(array.dims[presence.column_dim], kMaxDims),
                                presence.rows > 1 ? shortened(join(others, ", "), kMaxDims) : "",
                                array.sharded);
}

/// The beginning of a section, with its heading.
std::string section_begin(const std::string& id, const std::string& heading) {
  return fmt::format("<section id=\"{}\" aria-labelledby=\"{}-name\"><h3 id=\"{}-name\">{}</h3>\n",
                     id, id, id, html_cut(heading, kMaxShownName));
}

std::string no_picture(const ShownVariable& variable) {
  return "<p>" + html_cut("No picture: " + variable.why_not, kMaxShownText) + "</p>\n";
}

}  // namespace

const char* const kVariableStyle = R"(
svg.map { border: 1px solid var(--line); } .coast, .halo { fill: none; stroke: #000; stroke-width: 1.3; } .halo { stroke: #fff; stroke-width: 2.8; stroke-opacity: .55; }
:root { --bar: #3d7ea6; --stored: #3d7ea6; --some: #e0a030; --missing: #d1495b; }
.bar { fill: var(--bar); } .stored { fill: var(--stored); } .some { fill: var(--some); } .missing { fill: var(--missing); }
.wide svg { min-width: 320px; max-width: 720px; } td { overflow-wrap: anywhere; }
h3 { font-size: 1.05em; margin: 2em 0 .2em; overflow-wrap: anywhere; } section { border-top: 1px solid var(--line); }
.key { display: inline-block; width: .8em; height: .8em; margin: 0 .3em 0 0; border-radius: 2px; } .key + span { margin-right: 1.2em; }
@media (max-width: 600px) { .look svg text, section .wide svg text { font-size: 19px; } }
.look > div + div svg text { font-size: 19px; }
@media (min-width: 900px), print { .look { display: grid; grid-template-columns: minmax(0, 3fr) minmax(0, 2fr); gap: 1.5em; align-items: start; } }
.look > div, .look svg { min-width: 0; } caption { padding-top: .5em; }
@media print { section { break-inside: avoid-page; } h3 { break-after: avoid; } * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
)";

std::string value_text(double value) { return number_text(value, 5); }

std::string share_text(std::int64_t part, std::int64_t all) {
  const std::string count = format_count(static_cast<std::uint64_t>(part));
  if (part == 0) return "none";
  if (part == all) return fmt::format("all {}", count);
  const double percent = 100 * static_cast<double>(part) / static_cast<double>(all);
  if (percent < 0.1) return fmt::format("{} (below 0.1 %)", count);
  if (percent > 99.9) return fmt::format("{} (above 99.9 %)", count);
  return fmt::format("{} ({:.1f} %)", count, percent);
}

std::string CoastSymbols::id_of(const std::string& path) {
  return ids_.try_emplace(path, fmt::format("coast{}", ids_.size() + 1)).first->second;
}

std::string CoastSymbols::html() const {
  if (ids_.empty()) return {};
  std::string out =
      "<svg width=\"0\" height=\"0\" aria-hidden=\"true\" style=\"position: absolute; "
      "width: 0; height: 0\"><defs>\n";
  for (const auto& [path, id] : ids_) out += fmt::format("<path id=\"{}\" d=\"{}\"/>\n", id, path);
  return out + "</defs></svg>\n";
}

std::string histogram_picture(const SampleSummary& summary, const std::string& name,
                              const std::string& units) {
  if (summary.histogram.empty() || !(summary.max > summary.min)) return {};
  constexpr double kLeft = 60, kRight = 14, kTop = 18, kHeight = 110;
  const double inside_width = kSectionWidth - kLeft - kRight;
  const auto largest =
      static_cast<double>(*std::max_element(summary.histogram.begin(), summary.histogram.end()));
  const std::vector<double> ticks = ticks_to(largest, 3, true);
  std::string inside;
  for (const double tick : ticks) {
    const double y = kTop + kHeight * (1 - tick / ticks.back());
    inside += svg_axis(kLeft, kSectionWidth - kRight, y) +
              svg_text(kLeft - 8, y + 6, count_tick_text(tick), "end");
  }
  const double step = inside_width / static_cast<double>(summary.histogram.size());
  const double width = summary.max / 2 - summary.min / 2;  // half of the range, which may be past
  const auto edge = [&](std::size_t i) {                   // the largest number
    const double part = static_cast<double>(i) / static_cast<double>(summary.histogram.size());
    return summary.min + 2 * (width * part);
  };
  for (std::size_t i = 0; i < summary.histogram.size(); ++i) {
    if (summary.histogram[i] == 0) continue;
    const double height = kHeight * static_cast<double>(summary.histogram[i]) / ticks.back();
    inside += svg_bar("bar", kLeft + static_cast<double>(i) * step + 0.5, kTop + kHeight - height,
                      step - 1, height,
                      fmt::format("{} from {} to {}", counted(summary.histogram[i], "value"),
                                  value_text(edge(i)), value_text(edge(i + 1))));
  }
  inside += svg_text(kLeft, kTop + kHeight + 16, value_text(summary.min)) +
            svg_text(kLeft + inside_width / 2, kTop + kHeight + 16,
                     value_text(summary.min / 2 + summary.max / 2), "middle") +
            svg_text(kSectionWidth - kRight, kTop + kHeight + 16,
                     with_units(value_text(summary.max), units.size() < 20 ? units : ""), "end");
  return svg_picture(fmt::format("Histogram of {}, from {} to {}", name, value_text(summary.min),
                                 value_text(summary.max)),
                     kSectionWidth, kTop + kHeight + 24, inside);
}

std::string presence_picture(const ChunkPresence& presence, const std::string& column_name,
                             const std::string& row_name, bool shards) {
  constexpr double kLeft = 10, kTop = 4;
  const char* noun = shards ? "shard" : "chunk";
  const double inside_width = kSectionWidth - 2 * kLeft;
  const double step = std::min(24.0, inside_width / static_cast<double>(presence.columns));
  const double row_height = std::clamp(72.0 / static_cast<double>(presence.rows), 5.0, 18.0);
  const auto kind_of = [&](std::int64_t cell) {
    const auto i = static_cast<std::size_t>(cell);
    return presence.found[i] >= presence.all[i] ? "stored"
           : presence.found[i] == 0             ? "missing"
                                                : "some";
  };
  std::string inside;
  for (std::int64_t row = 0; row < presence.rows; ++row) {
    const std::int64_t first = row * presence.columns;
    const bool separate = step >= 6;  // cells that are alike and too narrow for gaps are one
    for (std::int64_t column = 0; column < presence.columns;) {
      const char* kind = kind_of(first + column);
      std::int64_t end = column + 1;
      while (!separate && end < presence.columns && kind_of(first + end) == kind) ++end;
      const double gap = separate ? 1 : 0;
      inside += svg_bar(kind, kLeft + static_cast<double>(column) * step,
                        kTop + static_cast<double>(row) * row_height,
                        static_cast<double>(end - column) * step - gap, row_height - 1);
      column = end;
    }
  }
  const double bottom = kTop + static_cast<double>(presence.rows) * row_height;
  inside += svg_text(kLeft, bottom + 14,
                     fmt::format("{} from left to right{}", column_name,
                                 row_name.empty() ? "" : "; " + row_name + " from top to bottom"));
  const std::int64_t missing = presence.objects - presence.stored;
  const std::string text =
      fmt::format("Stored: {} of {}{}", format_count(static_cast<std::uint64_t>(presence.stored)),
                  counted(presence.objects, noun),
                  missing == 0 ? ""
                               : fmt::format("; missing: {}, which hold the fill value",
                                             share_text(missing, presence.objects)));
  std::string out =
      "<p>" + html(text) + ".</p>\n" + svg_picture(text, kSectionWidth, bottom + 20, inside);
  if (missing == 0) return out;
  const auto key = [](const char* kind, const char* name) {
    return fmt::format(
        "<span class=\"key\" style=\"background: var(--{})\"></span><span>{}</span>\n", kind, name);
  };
  return out + "<p class=\"of\">" + key("stored", "stored") + key("some", "some of several") +
         key("missing", "missing") + "</p>\n";
}

std::string variable_section(const ShownVariable& variable, const std::string& id,
                             CoastSymbols& coasts) {
  std::string out = section_begin(id, variable.path);
  std::vector<std::string> words;
  if (!variable.title.empty()) words.push_back(html_cut(variable.title, kMaxShownText));
  if (!variable.units.empty()) words.push_back("[" + html_cut(variable.units, kMaxShownName) + "]");
  if (!variable.type.empty()) words.push_back(html_cut(variable.type, kMaxShownName));
  out += "<p class=\"of\">" + join(words, " &middot; ") + "</p>\n";
  const bool whole = variable.is_whole();
  if (!variable.why_not.empty()) {
    out += no_picture(variable);
  } else {
    out += variable.png.empty() ? "<div>\n<div>" : "<div class=\"look\">\n<div>";
    if (!variable.png.empty())
      out += map_figure(variable, coasts);
    else if (variable.summary.finite() == 0 && variable.summary.count > 0)
      out += std::string("<p>No picture: every value ") + (whole ? "" : "of the sample ") +
             "is missing" +
             html_cut(variable.position.empty() ? "" : ", at " + variable.position, kMaxShownText) +
             ".</p>\n";
    out += "</div>\n<div>" +
           histogram_picture(variable.summary, (whole ? "" : "the sample of ") + variable.path,
                             variable.units) +
           facts_table(variable) + "</div></div>\n";
  }
  return out + chunks_part(variable) + "</section>\n";
}

std::string colours_section(const ShownVariable& picture, const std::string& id,
                            CoastSymbols& coasts) {
  std::string out = section_begin(id, "In true colours: " + picture.path);
  if (!picture.why_not.empty()) return out + no_picture(picture) + "</section>\n";
  return out + "<p class=\"of\">" + html_cut(picture.title, kMaxShownText) + "</p>\n" +
         map_figure(picture, coasts) + "</section>\n";
}

}  // namespace batchfs
