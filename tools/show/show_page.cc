#include "tools/show/show_page.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "engine/base/counted.h"
#include "engine/base/json_text.h"
#include "engine/base/strings.h"
#include "engine/zarr/codecs_text.h"
#include "engine/zarr/node_path.h"
#include "tools/cli/groups.h"
#include "tools/cli/text.h"
#include "tools/inspect/inspect_text.h"
#include "tools/page/html.h"
#include "tools/show/variable_section.h"
#include "tools/show/view_section.h"

namespace batchfs {

namespace {

constexpr std::size_t kMaxAttributes = 60, kMaxProblems = 100, kMaxLeftOut = 500;
constexpr std::size_t kMaxTreeBytes = 4 << 20;  // hostile names are long

using Arrays = std::vector<const InspectedArray*>;
/// Ids of the sections of arrays, by path.
using Links = std::map<std::string, std::string>;

/// Arrays by group, those of groups without arrays too.
std::map<std::string, Arrays> by_group(const ShowPage& page) {
  std::map<std::string, Arrays> groups;
  for (const auto& [path, group] : page.opened->hierarchy->groups)
    if (is_in_group(path, page.opened->group)) groups[path];
  for (const InspectedArray& array : *page.arrays)
    groups[parent_group(array.metadata->path)].push_back(&array);
  return groups;
}

std::string shown_type(const InspectedArray& array) {
  const std::string stored = array.metadata->type.name(), decoded = array.type().name();
  return stored == decoded ? stored : stored + " -> " + decoded;
}

std::string shown_units(const InspectedArray& array) {
  const bool time = array.cf && array.cf->time != CfDecoding::Time::none;
  return time && !array.type().is_integer() ? "" : array.attribute("units");
}

std::string cell(const std::string& text, bool number = false) {
  return (number ? "<td class=\"n\">" : "<td>") + html_cut(text, kMaxShownName) + "</td>";
}

/// "/temperature" of the group "" is "temperature".
std::string name_cell(const InspectedArray& array, const Links& links) {
  const auto link = links.find(array.metadata->path);
  std::string text = html_cut(array.metadata->path.empty() ? "/" : array.name, kMaxShownName);
  if (link != links.end()) text = fmt::format("<a href=\"#{}\">{}</a>", link->second, text);
  return "<th scope=\"row\">" + text + "</th>";
}

std::string array_row(const InspectedArray& array, const Links& links, bool measured) {
  const ArrayMetadata& metadata = *array.metadata;
  const bool has_chunks = array.grid.chunk_shape().size() == metadata.shape.size();
  std::string values = array.range ? range_text(*array.range) : "";
  if (!array.unsupported.empty()) values = "cannot be read: " + array.unsupported;
  if (!array.unreadable.empty()) values = "cannot be read: " + array.unreadable;
  std::string row =
      "<tr>" + name_cell(array, links) + cell(join(array.dims, ", ")) +
      cell(shape_text(metadata.shape)) + cell(shown_type(array)) + cell(shown_units(array)) +
      cell(values) +
      cell(has_chunks
               ? shape_text(array.grid.chunk_shape()) +
                     (array.sharded ? " in shards of " + shape_text(metadata.chunk_shape) : "")
               : "") +
      cell(codecs_text(metadata.codecs)) +
      cell(array.bytes ? format_size(*array.bytes) : "varies", true);
  if (measured) row += cell(array.stored ? format_size(*array.stored) : "", true);
  return row + "</tr>\n";
}

/// At most `rows` rows; `shown`: how many there are.
std::string arrays_table(const Arrays& arrays, std::size_t rows, const Links& links,
                         std::size_t& shown) {
  const bool measured = std::any_of(arrays.begin(), arrays.end(),
                                    [](const InspectedArray* array) { return array->stored; });
  std::string table =
      "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Arrays\">"
      "<table class=\"arrays\"><thead><tr>";
  for (const char* name :
       {"Array", "Dimensions", "Shape", "Type", "Units", "Values", "Chunks", "Codecs"})
    table += fmt::format("<th scope=\"col\">{}</th>", name);
  table += "<th scope=\"col\" class=\"n\">Size</th>";
  if (measured) table += "<th scope=\"col\" class=\"n\">Stored</th>";
  table += "</tr></thead><tbody>\n";
  for (; shown < std::min(rows, arrays.size()) && table.size() < kMaxTreeBytes; ++shown)
    table += array_row(*arrays[shown], links, measured);
  return table + "</tbody></table></div>\n";
}

std::string attributes_table(const Json& attributes) {
  if (!attributes.is_object() || attributes.empty()) return {};
  std::string rows;
  std::size_t count = 0;
  for (const auto& [name, value] : attributes.items()) {
    if (count++ == kMaxAttributes) break;
    const std::string text = value.is_string() ? value.get<std::string>() : json_text(value, -1);
    rows += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n",
                        html_cut(name, kMaxShownName), html_cut(text, kMaxShownText));
  }
  std::string out = fmt::format("<details><summary>{}</summary><div class=\"wide\"><table>{}",
                                counted(std::ssize(attributes), "attribute"), rows);
  out += "</table></div>";
  if (attributes.size() > kMaxAttributes)
    out += fmt::format("<p class=\"of\">and {} more</p>", attributes.size() - kMaxAttributes);
  return out + "</details>\n";
}

/// Groups, each with its arrays, as far as there is room.
std::string tree(const ShowPage& page, const Links& links) {
  std::string out;
  std::size_t rows = ShowPage::kMaxRows, groups_left = ShowPage::kMaxRows, unseen = 0;
  for (const auto& [path, arrays] : by_group(page)) {
    if (groups_left == 0 || out.size() > kMaxTreeBytes || (rows == 0 && !arrays.empty())) {
      unseen += arrays.size();
      continue;
    }
    --groups_left;
    const auto depth = path.empty() ? 0 : std::count(path.begin(), path.end(), '/') + 1;
    out += fmt::format(
        "<details open class=\"group\" style=\"margin-left: {:.1f}em\"><summary><h3>{}</h3> "
        "<span class=\"of\">{}</span></summary>\n",
        0.8 * static_cast<double>(std::min<std::ptrdiff_t>(depth, 8)),
        html_cut(path_text(path), kMaxShownName), counted(std::ssize(arrays), "array"));
    if (const auto group = page.opened->hierarchy->groups.find(path);
        group != page.opened->hierarchy->groups.end())
      out += attributes_table(group->second.attributes);
    std::size_t shown = 0;
    if (!arrays.empty()) out += arrays_table(arrays, rows, links, shown);
    rows -= shown;
    unseen += arrays.size() - shown;
    out += "</details>\n";
  }
  if (unseen > 0)
    out += fmt::format("<p>{} are not listed; `batchfs inspect` lists all.</p>\n",
                       counted(static_cast<std::int64_t>(unseen), "more array"));
  return out;
}

std::string totals(const ShowPage& page) {
  const Hierarchy& hierarchy = *page.opened->hierarchy;
  std::uint64_t bytes = 0, stored = 0;
  bool all_stored = !page.arrays->empty();
  for (const InspectedArray& array : *page.arrays) {
    bytes += array.bytes.value_or(0);
    stored += array.stored.value_or(0);
    all_stored = all_stored && array.stored;
  }
  const auto groups =
      std::count_if(hierarchy.groups.begin(), hierarchy.groups.end(),
                    [&](const auto& g) { return is_in_group(g.first, page.opened->group); });
  std::vector<std::string> words{
      "Zarr format " + std::to_string(hierarchy.zarr_format), counted(groups, "group"),
      counted(std::ssize(*page.arrays), "array"), format_size(bytes) + " decoded"};
  if (all_stored) words.push_back(format_size(stored) + " stored");
  words.push_back(page.made);
  return "<p class=\"of\">" + html(join(words, " · ")) + "</p>\n";
}

std::string problems(const ShowPage& page) {
  std::string rows;
  std::size_t count = 0;
  const auto add = [&](const std::string& where, const std::string& why) {
    if (++count <= kMaxProblems)
      rows +=
          "<li>" + html_cut(where, kMaxShownName) + ": " + html_cut(why, kMaxShownText) + "</li>\n";
  };
  for (const auto& [key, why] : page.opened->hierarchy->problems)
    if (is_in_group(key, page.opened->group)) add(key, why);
  for (const InspectedArray& array : *page.arrays) {
    const std::string path = path_text(array.metadata->path);
    if (!array.unsupported.empty()) add(path, array.unsupported);
    if (!array.unreadable.empty()) add(path, array.unreadable);
    if (!array.undecoded.empty()) add(path, "is read as stored: " + array.undecoded);
  }
  if (count == 0) return {};
  if (count > kMaxProblems)
    rows +=
        fmt::format("<li>and {} more; `batchfs inspect` shows all</li>\n", count - kMaxProblems);
  return "<h2 id=\"problems\">Problems</h2>\n<ul>\n" + rows + "</ul>\n";
}

std::string left_out_part(const std::vector<std::string>& paths) {
  if (paths.empty()) return {};
  std::string items;
  for (std::size_t i = 0; i < std::min(kMaxLeftOut, paths.size()); ++i)
    items += (i > 0 ? ", " : "") + html_cut(paths[i], kMaxShownName);
  if (paths.size() > kMaxLeftOut) items += fmt::format(" and {} more", paths.size() - kMaxLeftOut);
  return "<h3>Without a picture</h3>\n<p class=\"of\">The page has its limits; --pictures, --read, "
         "--group and --array choose others.</p>\n<p class=\"names\">" +
         items + "</p>\n";
}

constexpr const char* kShowStyle = R"(
nav ul { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .2em 1.2em; margin: .8em 0; } nav li { margin: 0; }
a { color: #0b63a5; } @media screen and (prefers-color-scheme: dark) { a { color: #7cbcf0; } }
a:focus-visible, summary:focus-visible, .wide:focus-visible { outline: 2px solid currentColor; outline-offset: 2px; }
details.group > summary h3 { display: inline; margin: 0; } details { margin: .5em 0; } summary { cursor: pointer; overflow-wrap: anywhere; }
table.arrays { min-width: 62em; } span.of { color: var(--soft); } table.arrays td, table.arrays th { overflow-wrap: normal; font-size: .92em; vertical-align: top; max-width: 22em; }
p.names { overflow-wrap: anywhere; }
@media print { table.arrays { font-size: .75em; min-width: 0; } a { color: inherit; text-decoration: none; } nav { display: none; } }
)";

}  // namespace

std::string show_page(const ShowPage& page) {
  Links links;
  CoastSymbols coasts;
  std::string sections;
  for (std::size_t i = 0; i < page.colours.size(); ++i)
    sections += colours_section(page.colours[i], fmt::format("colours{}", i + 1), coasts);
  for (std::size_t i = 0; i < page.variables.size(); ++i) {
    const ShownVariable& variable = page.variables[i];
    const std::string id = fmt::format("variable{}", i + 1);
    links.emplace(variable.array->metadata->path, id);
    sections += variable_section(variable, id, coasts);
  }
  const std::string url = page.opened->store->url();
  std::string out =
      page_begin("batchfs: " + url, std::string(kShowStyle) + kViewStyle + kVariableStyle);
  out += "<main>\n<h1>" + html_cut(url, 4 * kMaxShownText) + "</h1>\n" + totals(page);
  const std::string problem_list = problems(page), left_out = left_out_part(page.left_out);
  const bool has_variables = !sections.empty() || !left_out.empty();
  out += "<nav aria-label=\"Contents\"><ul><li><a href=\"#arrays\">Arrays</a></li>";
  if (has_variables) out += "<li><a href=\"#variables\">Variables</a></li>";
  if (!page.views.empty()) out += "<li><a href=\"#views\">Views</a></li>";
  if (!problem_list.empty()) out += "<li><a href=\"#problems\">Problems</a></li>";
  out += "</ul></nav>\n<h2 id=\"arrays\">Groups and arrays</h2>\n" + tree(page, links);
  if (has_variables)
    out +=
        "<h2 id=\"variables\">Variables</h2>\n<p class=\"of\">From a part of each "
        "variable that is large.</p>\n" +
        sections + left_out;
  if (!page.views.empty()) {
    out += "<h2 id=\"views\">Views</h2>\n";
    for (std::size_t i = 0; i < page.views.size(); ++i)
      out += view_section(page.views[i], fmt::format("view{}", i + 1));
    if (page.more_views > 0)
      out += fmt::format("<p>{} are left out.</p>\n",
                         counted(static_cast<std::int64_t>(page.more_views), "more view"));
  }
  return out + problem_list + coasts.html() + "</main>\n" + page_end();
}

}  // namespace batchfs
