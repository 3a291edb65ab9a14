#pragma once
// The keys of a view that define its epochs: "epochs", and of "order" those for several readers.

#include <optional>

#include "engine/base/json.h"
#include "engine/view/spec.h"

namespace batchfs {

/// "lanes", "span" and "home" of `order`. Precondition: spec.order.shuffle and spec.xbatcher are
/// set.
void parse_lanes(const JsonRef& order, ViewSpec& spec);
/// "by" of `order`, with the view's "sources". Precondition: as parse_lanes().
void parse_by(const JsonRef& order, const std::optional<JsonRef>& sources, ViewSpec& spec);
/// A number, or an object of "count" and "samples".
void parse_epochs(const JsonRef& epochs, ViewSpec& spec);

/// With every default filled in. Precondition: a view of windows.
Json order_json(const ViewSpec& spec);
Json epochs_json(const ViewSpec& spec);

}  // namespace batchfs
