#include "tools/page/svg.h"

#include <algorithm>

#include <fmt/format.h>

#include "tools/page/html.h"

namespace batchfs {

std::string svg_picture(const std::string& name, double width, double height,
                        const std::string& inside) {
  return fmt::format(
      "<div class=\"wide\"><svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" "
      "aria-label=\"{}\">\n{}</svg></div>\n",
      width, height, html(name), inside);
}

std::string svg_text(double x, double y, const std::string& text, const char* anchor) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     html(text));
}

std::string svg_bar(const char* kind, double x, double y, double width, double height,
                    const std::string& tip) {
  return fmt::format(
      "<rect class=\"{}\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\">{}</rect>\n",
      kind, x, y, std::max(0.0, width), std::max(0.0, height),
      tip.empty() ? "" : "<title>" + html(tip) + "</title>");
}

std::string svg_axis(double left, double right, double y) {
  return fmt::format("<line class=\"axis\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
                     left, right, y, y);
}

}  // namespace batchfs
