#pragma once
// Parts of pictures in SVG. Coordinates are user units, from the upper left corner; colours come
// from the page's style, by class.

#include <string>

namespace batchfs {

/// A picture that screen readers announce as `name`, which is escaped here.
std::string svg_picture(const std::string& name, double width, double height,
                        const std::string& inside);

/// Text, escaped here; `y` is of its base line. `anchor`: start, middle or end.
std::string svg_text(double x, double y, const std::string& text, const char* anchor = "start");

/// A rectangle of a class, with a tooltip unless that is empty. Lengths below zero are zero.
std::string svg_bar(const char* kind, double x, double y, double width, double height,
                    const std::string& tip = "");

/// A line of the class "axis" along x.
std::string svg_axis(double left, double right, double y);

}  // namespace batchfs
