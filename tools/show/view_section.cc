#include "tools/show/view_section.h"

#include <fmt/format.h>

#include "engine/base/counted.h"
#include "engine/base/strings.h"
#include "tools/cli/text.h"
#include "tools/page/html.h"
#include "tools/show/variable_section.h"

namespace batchfs {

namespace {

std::string tensors_table(const ShownView& view) {
  std::string table =
      "<div class=\"wide\"><table><caption>Tensors of the batch</caption><thead><tr><th "
      "scope=\"col\">Tensor</th><th scope=\"col\">Dimensions</th><th scope=\"col\">Shape</th><th "
      "scope=\"col\">Type</th></tr></thead><tbody>\n";
  for (const ShownTensor& tensor : view.tensors)
    table += "<tr><th scope=\"row\">" + html_cut(tensor.name, kMaxShownName) + "</th><td>" +
             html_cut(join(tensor.dims, ", "), kMaxShownText) + "</td><td>" +
             html(shape_text(tensor.shape)) + "</td><td>" + html_cut(tensor.type, kMaxShownName) +
             "</td></tr>\n";
  return table + "</tbody></table></div>\n";
}

std::string channels_table(const ShownView& view) {
  if (view.channels.empty()) return {};
  std::string table =
      "<div class=\"wide\"><table><caption>Channels, of the values of this "
      "batch</caption><thead><tr>"
      "<th scope=\"col\">Tensor</th><th scope=\"col\">Channel</th>";
  for (const char* name : {"Mean", "Std", "Min", "Max", "Missing"})
    table += fmt::format("<th scope=\"col\" class=\"n\">{}</th>", name);
  table += "</tr></thead><tbody>\n";
  for (const ShownChannel& channel : view.channels) {
    table += "<tr><th scope=\"row\">" + html_cut(channel.tensor, kMaxShownName) + "</th><td>" +
             html_cut(channel.channel, kMaxShownName) + "</td>";
    const bool any = channel.count > channel.missing;
    for (const double value : {channel.mean, channel.std, channel.min, channel.max})
      table += "<td class=\"n\">" + (any ? value_text(value) : "-") + "</td>";
    table += "<td class=\"n\">" +
             (channel.count > 0 ? html(share_text(channel.missing, channel.count)) : "-") +
             "</td></tr>\n";
  }
  table += "</tbody></table></div>\n";
  if (view.more_channels > 0)
    table += fmt::format("<p class=\"of\">and {}</p>\n",
                         counted(static_cast<std::int64_t>(view.more_channels), "more channel"));
  return table;
}

std::string labels_list(const ShownView& view) {
  if (view.labels.empty()) return {};
  std::string items;
  for (const std::string& label : view.labels)
    items +=
        "<li>" + (label.empty() ? "without a label" : html_cut(label, kMaxShownText)) + "</li>\n";
  std::string out =
      fmt::format("<details><summary>Labels of the samples</summary><ol>\n{}</ol>\n", items);
  if (view.batch_samples > std::ssize(view.labels))
    out += fmt::format("<p class=\"of\">and {} more</p>\n",
                       view.batch_samples - std::ssize(view.labels));
  return out + "</details>\n";
}

}  // namespace

const char* const kViewStyle = R"(
figure { margin: .8em 0; } figcaption, caption { color: var(--soft); font-size: .92em; text-align: left; overflow-wrap: anywhere; }
.sheet { max-width: 100%; height: auto; border: 1px solid var(--line); background: #fff; } th { font-weight: 600; }
)";

std::string view_section(const ShownView& view, const std::string& id) {
  std::string out =
      fmt::format("<section id=\"{}\" aria-labelledby=\"{}-name\"><h3 id=\"{}-name\">{}</h3>\n", id,
                  id, id, html_cut(view.name, kMaxShownName));
  out += "<p class=\"of\">" +
         html_cut(fmt::format("{} · {} · {} of {}", view.file, counted(view.samples, "sample"),
                              counted(view.batches, "batch", "batches"),
                              counted(view.batch_size, "sample")),
                  2 * kMaxShownText) +
         "</p>\n";
  out += tensors_table(view);
  if (!view.why_not.empty())
    return out + "<p>" + html_cut("No batch: " + view.why_not, kMaxShownText) + "</p></section>\n";
  if (!view.png.empty())
    out += fmt::format(
        "<figure><img class=\"sheet\" width=\"{}\" height=\"{}\" alt=\"{}\" "
        "src=\"{}\"><figcaption>Batch 0 of epoch 0: a row for each channel, a column for "
        "each "
        "of the first samples.</figcaption></figure>\n",
        view.width, view.height,
        html_cut(
            fmt::format("Batch 0 of the view {}: its first samples as maps, channel by channel; "
                        "the table below has the numbers",
                        view.name),
            kMaxShownText),
        png_url(view.png));
  if (!view.note.empty()) out += "<p>" + html(view.note) + "</p>\n";
  return out + channels_table(view) + labels_list(view) + "</section>\n";
}

}  // namespace batchfs
