#include "tools/inspect/inspect_text.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "engine/base/counted.h"
#include "engine/base/strings.h"
#include "engine/zarr/codecs_text.h"
#include "engine/zarr/revision_text.h"
#include "tools/cli/given_options.h"
#include "tools/cli/groups.h"
#include "tools/cli/ome_text.h"
#include "tools/cli/stores/named_arrays.h"
#include "tools/cli/text.h"

namespace batchfs {

namespace {

constexpr std::size_t kName = 0, kUnits = 2;  // cells of an array
constexpr std::size_t kMaxUnits = 14;
constexpr std::size_t kMaxCell = 20;  // columns of a table's cell that others are aligned with

using Entries = std::vector<const InspectedArray*>;

bool has_chunks(const InspectedArray& entry) {
  return entry.grid.chunk_shape().size() == entry.metadata->shape.size();
}

std::string chunk_size_text(const InspectedArray& entry) {
  if (entry.metadata->type.is_variable()) return "";
  Dims all = entry.grid.chunk_shape();
  all.push_back(entry.metadata->type.itemsize);
  return fmt::format(" ({})", format_size(static_cast<std::uint64_t>(element_count(all))));
}

std::string name_of(const DataType& type) {
  if (type.kind != Kind::structured) return printable(type.name());
  return "struct of " + std::to_string(type.fields.size());
}

/// "float32", "int16 -> float32".
std::string type_text(const InspectedArray& entry) {
  const ArrayMetadata& array = *entry.metadata;
  const std::string stored = array.stored != nullptr ? std::string(array.stored->name)
                                                     : name_of(array.type),
                    decoded = name_of(entry.type());
  return stored == decoded ? stored : stored + " -> " + decoded;
}

/// The units to show; none for decoded times.
std::string units_of(const InspectedArray& entry) {
  const bool time = entry.cf && entry.cf->time != CfDecoding::Time::none;
  return time && entry.type().kind != Kind::floating && !entry.type().is_integer()
             ? ""
             : shortened(entry.attribute("units"), kMaxUnits);
}

/// "90 to -90 degrees_north, step -0.25".
std::string values_text(const InspectedArray& entry) {
  const std::string units = units_of(entry);
  if (!entry.range) return units;
  return printable(range_text(*entry.range, units));
}

/// Formats coordinates as a table, without its last columns if that is too wide.
std::string coordinates_text(const Entries& entries, const TextLayout& layout) {
  constexpr std::size_t kAll = 5, kLeast = 4;
  for (std::size_t columns = kAll;; --columns) {
    const auto row = [columns](std::vector<std::string> cells) {
      cells.resize(columns);
      return cells;
    };
    std::vector<std::string> heading;
    for (const char* text : {"coordinate", "length", "type", "values", "chunks"})
      heading.push_back(layout.faint(text));
    Table table(row(heading));
    for (const InspectedArray* entry : entries)
      table.add(row({layout.name(printable(entry->name)), shape_text(entry->metadata->shape),
                     name_of(entry->type()), values_text(*entry),
                     has_chunks(*entry)
                         ? format_count(static_cast<std::uint64_t>(entry->grid.chunk_count()))
                         : "?"}));
    const std::string text = table.text();
    const std::vector<std::string> lines = split(text, '\n');
    const bool fits = std::all_of(lines.begin(), lines.end(), [&](const std::string& line) {
      return text_columns(line) <= layout.columns;
    });
    if (fits || columns == kLeast) return wrapped(text, layout.columns);
  }
}

/// Properties that arrays in one block share: shape, dimensions, chunks, codecs.
std::vector<std::string> layout_words(const InspectedArray& entry) {
  const ArrayMetadata& metadata = *entry.metadata;
  std::vector<std::string> words{shape_text(metadata.shape)};
  if (!entry.dims.empty()) words.back() += " (" + printable(join(entry.dims, ", ")) + ")";
  if (!has_chunks(entry)) {
    words.emplace_back("chunks ?");
  } else if (!metadata.shape.empty()) {
    words.push_back("chunks " + shape_text(entry.grid.chunk_shape()) + chunk_size_text(entry));
    words.push_back(counted(entry.grid.chunk_count(), "chunk"));
    if (entry.sharded) words.push_back("shards " + shape_text(metadata.chunk_shape));
  }
  words.push_back(codecs_text(metadata.codecs));
  return words;
}

/// Formats one line for an array, and one for its decoding.
std::string array_text(const InspectedArray& entry, const std::vector<std::string>& cells,
                       const std::vector<std::size_t>& widths, const TextLayout& layout) {
  constexpr std::size_t kIndent = 4, kMinTitle = 12;
  std::string line(kIndent, ' ');
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i == 1 && text_columns(cells[0]) > widths[0])  // the name gets its own line
      return line.substr(0, line.find_last_not_of(' ') + 1) + "\n" +
             array_text(entry, {"", cells[1], cells[2], cells[3], cells[4]}, widths, layout);
    const std::string cell = i == kUnits ? shortened(cells[i], widths[i]) : cells[i];
    line += i == kName ? layout.name(cell) : cell;
    line.append(std::max(widths[i], text_columns(cell)) - text_columns(cell) + 2, ' ');
  }
  const std::size_t used = text_columns(line);
  if (used + kMinTitle <= layout.columns)
    if (const std::string title = shortened(entry.attribute("long_name"), layout.columns - used);
        !title.empty())
      line += layout.faint(title);
  line.resize(line.find_last_not_of(' ') + 1);
  std::string out = wrapped(line, layout.columns) + "\n";
  const std::vector<std::string> decoding =
      entry.cf ? decoding_words(*entry.cf) : std::vector<std::string>();
  if (!decoding.empty()) out += filled(decoding, kIndent + 2, layout.columns);
  return out;
}

std::vector<std::string> array_cells(const InspectedArray& entry) {
  return {printable(entry.metadata->path.empty() ? "/" : entry.name), type_text(entry),
          units_of(entry), entry.bytes ? format_size(*entry.bytes) : "size varies",
          entry.stored ? format_size(*entry.stored) : ""};
}

/// Narrows the columns if the cells of a row are too wide: names get lines of their own, units are
/// cut.
void shrink(std::vector<std::size_t>& widths, std::size_t columns) {
  constexpr std::size_t kLeast = 8;
  for (const std::size_t cell : {kUnits, kName}) {
    std::size_t used = 4;
    for (const std::size_t width : widths) used += width + 2;
    if (used > columns + 2)
      widths[cell] -= std::min(widths[cell] - std::min(widths[cell], kLeast), used - columns - 2);
  }
}

/// Lists the arrays that are not coordinates, grouped by layout.
std::string arrays_text(const Entries& entries, const TextLayout& layout) {
  std::vector<std::pair<std::vector<std::string>, Entries>> blocks;
  std::map<std::vector<std::string>, std::size_t> known;
  std::vector<std::size_t> widths{5, 4, 5, 4, 0};  // of the heading
  const bool is_measured = std::any_of(entries.begin(), entries.end(),
                                       [](const InspectedArray* e) { return e->stored; });
  if (is_measured) widths.back() = 6;
  for (const InspectedArray* entry : entries) {
    const std::vector<std::string> words = layout_words(*entry);
    const auto [block, is_new] = known.emplace(words, blocks.size());
    if (is_new) blocks.push_back({words, {}});
    blocks[block->second].second.push_back(entry);
    const std::vector<std::string> cells = array_cells(*entry);
    for (std::size_t i = 0; i < cells.size(); ++i)
      if (i != kName || text_columns(cells[i]) <= kMaxCell)
        widths[i] = std::max(widths[i], std::min(text_columns(cells[i]), kMaxCell));
  }
  shrink(widths, layout.columns);
  const std::vector<std::string> heading{"array", "type", "units", "size",
                                         is_measured ? "stored" : ""};
  std::string out(4, ' ');
  for (std::size_t i = 0; i < heading.size(); ++i) {
    out += layout.faint(heading[i]) +
           std::string(std::max(widths[i], heading[i].size()) - heading[i].size() + 2, ' ');
  }
  out.resize(out.find_last_not_of(' ') + 1);
  out = wrapped(out, layout.columns) + "\n";
  for (const auto& [words, members] : blocks) {
    out += filled(words, 2, layout.columns);
    for (const InspectedArray* entry : members)
      out += array_text(*entry, array_cells(*entry), widths, layout);
  }
  return out;
}

std::string group_text(const Entries& entries, const TextLayout& layout) {
  Entries coordinates, others;
  for (const InspectedArray* entry : entries)
    (entry->is_coordinate() ? coordinates : others).push_back(entry);
  std::string out = coordinates.empty() ? "" : coordinates_text(coordinates, layout);
  if (others.empty()) return out;
  return out + (out.empty() ? "" : "\n") + arrays_text(others, layout);
}

/// Can views be made of the group? `misfit`: why not of all of its arrays, if they do not fit
/// together.
bool has_views(const OpenedStore& opened, const std::string& group, std::string& misfit) {
  if (opened.hierarchy->ome.images.contains(group)) return true;
  try {
    return has_view_variables(Dataset(opened.store, *opened.hierarchy, group));
  } catch (const Error& error) {
    misfit = error.why();
    return false;
  }
}

/// Commands to try next, for each group: a view belongs to one.
std::string next_text(const OpenedStore& opened, const std::vector<InspectedArray>& entries) {
  constexpr std::size_t kMost = 5;  // groups that are named
  std::vector<std::string> groups{opened.group};
  for (const InspectedArray& entry : entries)
    if (const std::string group = parent_group(entry.metadata->path);
        std::find(groups.begin(), groups.end(), group) == groups.end())
      groups.push_back(group);
  std::string out, misfits;
  std::size_t named = 0, unfit = 0;
  for (const std::string& group : groups) {
    std::string misfit;
    if (!has_views(opened, group, misfit)) {
      if (!misfit.empty() && ++unfit <= kMost)
        misfits += "  " + printable(path_text(group) + ": " + misfit) + "\n";
      continue;
    }
    if (++named > kMost) {
      out += "  or another group\n";
      break;
    }
    out += named == 1 ? "\nNext: " : "  or: ";
    out += "batchfs view " +
           (group.empty() ? "" : "--group " + printable(shell_word(group)) + " ") +
           printable(words_of(opened.given) + shell_word(opened.store->url())) + " > view.json\n";
  }
  if (!misfits.empty()) out += "\nNot all arrays of a group fit into one view:\n" + misfits;
  return out;
}

/// "Zarr v3, 1 group, 3 arrays, 1.2 GB decoded, 310 MB stored, consolidated metadata".
std::string totals_text(const OpenedStore& opened, const std::vector<InspectedArray>& entries,
                        const TextLayout& layout) {
  const Hierarchy& hierarchy = *opened.hierarchy;
  std::uint64_t bytes = 0, stored = 0;
  bool all_stored = !entries.empty();
  for (const InspectedArray& entry : entries) {
    if (entry.bytes && *entry.bytes <= INT64_MAX - bytes) bytes += *entry.bytes;
    all_stored = all_stored && entry.stored;
    stored += entry.stored.value_or(0);
  }
  std::vector<std::string> words{
      "Zarr v" + std::to_string(hierarchy.zarr_format),
      counted(std::count_if(hierarchy.groups.begin(), hierarchy.groups.end(),
                            [&](const auto& g) { return is_in_group(g.first, opened.group); }),
              "group"),
      counted(std::ssize(entries), "array"), format_size(bytes) + " decoded"};
  if (all_stored) words.push_back(format_size(stored) + " stored");
  if (hierarchy.consolidated) words.emplace_back("consolidated metadata");
  return filled(words, 0, layout.columns);
}

std::string fields_text(const std::vector<InspectedArray>& entries) {
  std::string out;
  for (const InspectedArray& entry : entries) {
    std::vector<std::string> names;
    for (const auto& [name, type] : entry.fields) names.push_back(name + " (" + type + ")");
    if (!names.empty())
      out += "  " + printable(path_text(entry.metadata->path) + ": " + join(names, ", ")) + "\n";
  }
  return out.empty() ? out : "\nFields, each a variable of its own:\n" + out;
}

std::string troubles_text(const OpenedStore& opened, const std::vector<InspectedArray>& entries,
                          const TextLayout& layout) {
  std::string trouble, undecoded, unreadable;
  for (const InspectedArray& entry : entries) {
    const std::string path = path_text(entry.metadata->path);
    if (!entry.unsupported.empty())
      trouble += "  " + printable(path + ": " + entry.unsupported) + "\n";
    if (!entry.undecoded.empty())
      undecoded += "  " + printable(path + ": " + entry.undecoded) + "\n";
    if (!entry.unreadable.empty())
      unreadable += "  " + printable(path + ": " + entry.unreadable) + "\n";
  }
  for (const auto& [key, why] : opened.hierarchy->problems)
    if (is_in_group(key, opened.group)) trouble += "  " + printable(key + ": " + why) + "\n";
  trouble += ome_problems_text(*opened.hierarchy, opened.group);
  std::string out;
  if (!undecoded.empty())
    out +=
        "\n" + layout.problem("Cannot be decoded, only read with --decode raw:") + "\n" + undecoded;
  if (!unreadable.empty())
    out += "\n" + layout.problem("The values of these coordinates cannot be read:") + "\n" +
           unreadable;
  if (!trouble.empty()) out += "\n" + layout.problem("Cannot be read:") + "\n" + trouble;
  std::string notes;
  for (const auto& [key, why] : opened.hierarchy->notes)
    if (is_in_group(key, opened.group)) notes += "  " + printable(key + ": " + why) + "\n";
  if (!notes.empty()) out += "\nNot read as stored:\n" + notes;
  return out;
}

/// Shown groups of a collection of images: a plate has thousands.
constexpr std::int64_t kMaxShownGroups = 4;

}  // namespace

std::string path_text(const std::string& path) { return path.empty() ? "/" : path; }

std::vector<std::string> decoding_words(const CfDecoding& cf) {
  std::vector<std::string> words;
  std::string formula;
  if (cf.has_scale) formula = fmt::format("x {}", cf.scale);
  if (cf.has_offset)
    formula += fmt::format("{}{} {}", formula.empty() ? "" : " ", cf.offset < 0 ? "-" : "+",
                           std::fabs(cf.offset));
  if (!formula.empty()) words.push_back("decoded as stored " + formula);
  std::vector<std::string> missing;
  const auto add = [&missing](std::string value) {
    if (std::find(missing.begin(), missing.end(), value) == missing.end())
      missing.push_back(std::move(value));
  };
  for (const double value : cf.masked)
    if (!std::isnan(value))
      add(std::fabs(value) < 1e9 ? fmt::format("{}", value) : fmt::format("{:g}", value));
  for (const std::int64_t value : cf.masked_counts) add(std::to_string(value));
  constexpr std::size_t kMax = 4;
  if (missing.size() > kMax) missing.resize(kMax);
  if (!missing.empty())
    words.push_back(
        fmt::format("{} {} missing", join(missing, " and "), missing.size() == 1 ? "is" : "are"));
  if (cf.to_bool) words.emplace_back("not zero is true");
  return words;
}

std::string inspect_text(const OpenedStore& opened, const std::vector<InspectedArray>& entries,
                         const TextLayout& layout) {
  const Hierarchy& hierarchy = *opened.hierarchy;
  const auto sentences = [&layout](const std::string& text) {
    return wrapped(text, layout.wraps ? layout.columns : 0);
  };
  std::map<std::string, Entries> by_group;
  for (const InspectedArray& entry : entries)
    by_group[parent_group(entry.metadata->path)].push_back(&entry);
  std::string out = layout.heading(printable(opened.store->url())) + "\n";
  out += totals_text(opened, entries, layout);
  std::string notes;
  if (hierarchy.revision) notes += "Icechunk " + revision_text(*hierarchy.revision) + "\n";
  if (const std::string advice = naming_advice(hierarchy); !advice.empty())
    notes += "This is what is known: " + advice + "\n";
  out += sentences(notes + collections_text(hierarchy, opened.group));
  std::int64_t shown = 0;
  for (const auto& [group, members] : by_group) {
    if (shown++ == kMaxShownGroups && !hierarchy.ome.collections.empty()) {
      out += fmt::format("\nand {}; --group PATH shows one\n",
                         counted(std::ssize(by_group) - kMaxShownGroups, "more group"));
      break;
    }
    out += "\n" + layout.heading(printable(path_text(group))) + "\n" +
           sentences(image_text(hierarchy, group)) + group_text(members, layout);
  }
  out += sentences(fields_text(entries) + troubles_text(opened, entries, layout));
  return out + next_text(opened, entries);
}

}  // namespace batchfs
