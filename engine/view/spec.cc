#include "engine/view/spec.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "engine/base/json_comments.h"
#include "engine/base/json_text.h"
#include "engine/base/strings.h"
#include "engine/view/order/order_spec.h"
#include "engine/view/sources_spec.h"
#include "engine/view/view_hints.h"
#include "engine/view/view_limits.h"
#include "engine/zarr/ome/level.h"

namespace batchfs {

namespace {

/// Plans and provenance list every sample of a batch.
constexpr std::int64_t kMaxBatch = INT64_C(1) << 24;

std::string checked_name(const JsonRef& json, const std::string& name) {
  if (!is_file_name(name))
    throw json.error(
        fmt::format("'{}' cannot be a file name: 1 to 255 bytes, no '/', not '.' or '..'", name));
  return name;
}

/// One of `choices`. `hints` are words of other programs for them.
std::string choice(const JsonRef& json, std::initializer_list<std::string_view> choices,
                   std::span<const KeyHint> hints = {}) {
  const std::vector<std::string> names(choices.begin(), choices.end());
  if (!json.is_string() && !json.value().is_boolean())
    throw json.error(fmt::format("expected a string, one of {}", join(names, ", ")));
  const std::string text = json.is_string() ? json.string() : json.value().dump();
  if (json.is_string() && std::find(names.begin(), names.end(), text) != names.end()) return text;
  const std::string_view advice = advice_for(text, hints);
  throw json.error(
      fmt::format("'{}' is none of {}{}", text, join(names, ", "),
                  advice.empty() ? did_you_mean(text, names) : fmt::format(": {}", advice)));
}

/// The choice that a text means: itself, that of the hint for it, else `usual`.
std::string meant(const std::string& text, std::initializer_list<std::string_view> choices,
                  std::span<const KeyHint> hints, std::string_view usual) {
  if (std::find(choices.begin(), choices.end(), text) != choices.end()) return text;
  const std::string_view advice = advice_for(text, hints);  // write "global"
  const std::size_t quote = advice.find('"');
  if (quote == std::string_view::npos) return std::string(usual);
  return std::string(advice.substr(quote + 1, advice.find('"', quote + 1) - quote - 1));
}

/// The value as the user wrote it, cut where it is long.
std::string short_json(const Json& json) {
  constexpr std::size_t kMost = 60;
  const std::string text = json_text(json, -1);
  return text.size() <= kMost ? text : json.is_array() ? "[...]" : "...";
}

/// A number of positions, or a duration for later.
void parse_length(const JsonRef& json, std::int64_t& positions, std::optional<Duration>& duration,
                  std::string& path) {
  path = json.path();
  if (!json.is_string()) {
    positions = json.integer(1, kMaxSteps);
    return;
  }
  duration = parse_duration(json.string());
  if (!duration)
    throw json.error(fmt::format(
        "expected a whole number, or a length of time as 24h; '{}' is neither", json.string()));
  if (duration->months <= 0 && duration->nanoseconds <= 0)
    throw json.error(fmt::format("'{}' is not more than 0", json.string()));
}

/// "every" and "origin", in place of a stride.
void parse_every(const JsonRef& json, WindowSpec& spec) {
  const auto every = json.find("every"), origin = json.find("origin");
  if (origin && !every) throw origin->error("it goes with \"every\"");
  if (!every) return;
  spec.every = read_duration(*every);
  spec.every_path = every->path();
  if (spec.every->months <= 0 && spec.every->nanoseconds <= 0)
    throw every->error(fmt::format("'{}' is not more than 0", every->string()));
  if (spec.has_stride)
    throw every->error(
        "\"stride\" counts positions and \"every\" goes by labels; leave one of them out");
  if (spec.wrap) throw every->error("lengths of time do not go with \"wrap\"");
  spec.stride = 1;
  if (!origin) return;
  spec.origin_path = origin->path();
  if (!origin->is_string())
    throw origin->error("expected a string, \"first\" or a date; write 2000-01-01T06");
  spec.origin = origin->string();
}

/// `pad_value`: the value in the dimensions, once.
std::vector<WindowSpec> parse_window(const JsonRef& json, std::optional<double>& pad_value) {
  std::vector<WindowSpec> window;
  for (const auto& [dim, value] : json.members()) {
    using Edge = WindowSpec::Edge;
    WindowSpec spec{dim};
    if (value.is_object()) {
      allow_only(value, {"size", "stride", "every", "origin", "wrap", "edge", "pad_value"},
                 view_hints::kWindow);
      parse_length(value.at("size"), spec.size, spec.size_duration, spec.size_path);
      spec.stride = spec.size;
      if (const auto stride = value.find("stride")) {
        spec.has_stride = true;
        parse_length(*stride, spec.stride, spec.stride_duration, spec.stride_path);
      }
      if (const auto wrap = value.find("wrap")) spec.wrap = wrap->boolean();
      parse_every(value, spec);
      if (const auto edge = value.find("edge")) {
        const std::string name = choice(*edge, {"drop", "pad", "partial"}, view_hints::kEdges);
        spec.edge = name == "drop" ? Edge::drop : name == "pad" ? Edge::pad : Edge::partial;
        if (spec.edge != Edge::drop && spec.size > kMaxPadded)
          throw edge->error(
              fmt::format("windows over the edge have at most {} positions", kMaxPadded));
        if (spec.wrap && spec.edge != Edge::drop)
          throw edge->error("a dimension with \"wrap\" has no edge; leave one of them out");
      }
      if (const auto pad = value.find("pad_value")) {
        if (spec.edge == Edge::drop)
          throw pad->error("it goes with \"edge\": \"pad\" or \"partial\"");
        if (pad_value && *pad_value != pad->number())
          throw pad->error("there is one \"pad_value\" for all dimensions");
        pad_value = pad->number();
      }
    } else {
      parse_length(value, spec.size, spec.size_duration, spec.size_path);
      spec.stride = spec.size;
    }
    window.push_back(spec);
  }
  if (window.empty()) throw json.error("name at least one dimension");
  return window;
}

std::vector<std::string> unique_strings(const JsonRef& json) {
  if (json.is_string())
    throw json.error(fmt::format("expected a list; write [{}]", json.value().dump()));
  const std::vector<std::string> strings = json.strings();
  if (strings.empty()) throw json.error("the list is empty");
  std::set<std::string> seen;
  for (const std::string& s : strings)
    if (!seen.insert(s).second) throw json.error(fmt::format("'{}' is given twice", s));
  return strings;
}

TensorDefinition parse_tensor(const std::string& name, const JsonRef& json) {
  TensorDefinition tensor;
  tensor.name = checked_name(json, name);
  tensor.path = json.path();
  if (json.value().is_array())
    throw json.error(
        fmt::format("expected an object; write {{\"variables\": {}}}", short_json(json.value())));
  allow_only(json, {"variables", "offsets", "stack", "dims", "broadcast", "coarsen"},
             view_hints::kTensor);
  TensorVariables variables = parse_tensor_variables(json.at("variables"));
  tensor.variables = std::move(variables.stored);
  tensor.made = std::move(variables.made);
  if (const auto offsets = json.find("offsets")) {
    if (offsets->value().is_array())
      throw offsets->error(
          fmt::format("expected an object; write {{\"time\": {}}}, with the "
                      "dimension",
                      short_json(offsets->value())));
    for (const auto& [dim, list] : offsets->members()) {
      OffsetList parsed = parse_offsets(dim, list);
      if (parsed.durations.empty())
        tensor.offsets.emplace_back(dim, std::move(parsed.steps));
      else
        tensor.durations.push_back(std::move(parsed));
    }
  }
  if (const auto stack = json.find("stack")) {
    tensor.stack = stack->string();
    if (tensor.stack->empty()) throw stack->error("the name is empty");
  }
  if (const auto dims = json.find("dims")) tensor.dims = unique_strings(*dims);
  if (const auto coarsen = json.find("coarsen")) tensor.coarsen = parse_coarsen(*coarsen);
  if (const auto broadcast = json.find("broadcast")) tensor.broadcast = broadcast->boolean();
  if (tensor.variables.size() + tensor.made.size() > 1 && !tensor.stack)
    throw json.error(
        "several variables in one tensor need \"stack\": the name of the dimension that joins "
        "them");
  return tensor;
}

std::vector<std::pair<std::string, std::int64_t>> parse_sizes(const JsonRef& json,
                                                              std::int64_t least) {
  std::vector<std::pair<std::string, std::int64_t>> sizes;
  for (const auto& [dim, size] : json.members())
    sizes.emplace_back(dim, size.integer(least, kMaxSteps));
  return sizes;
}

XbatcherSpec parse_xbatcher(const JsonRef& json) {
  json.allow_only({"input_dims", "input_overlap", "batch_dims", "concat_input_dims"});
  XbatcherSpec spec;
  spec.input_dims = parse_sizes(json.at("input_dims"), 1);
  if (spec.input_dims.empty()) throw json.at("input_dims").error("name at least one dimension");
  if (const auto overlap = json.find("input_overlap"))
    spec.input_overlap = parse_sizes(*overlap, 0);
  if (const auto batch = json.find("batch_dims")) spec.batch_dims = parse_sizes(*batch, 1);
  if (const auto concat = json.find("concat_input_dims"))
    spec.concat_input_dims = concat->boolean();
  return spec;
}

/// Settings of a mixture in place of its views' own. Lanes are those of the readers of a view by
/// itself.
void prepare_for_mixture(ViewSpec& spec, const MixedIn& mixed) {
  if (spec.xbatcher)
    throw Error(
        ErrorCode::not_supported,
        "xbatcher: its batches have their own order; a mixture takes views with \"window\"");
  for (const WindowSpec& window : spec.window)
    if (window.edge == WindowSpec::Edge::partial)
      throw Error(ErrorCode::not_supported,
                  fmt::format("window.{}.edge: \"partial\" makes short batches, which a mixture "
                              "cannot have; take \"pad\"",
                              window.dim));
  spec.batch_size = mixed.batch_size;
  spec.remainder = ViewSpec::Remainder::pad;
  spec.formats = mixed.formats;
  spec.epochs = 1;
  spec.order.lanes = 1;
  spec.order.home = false;
}

}  // namespace

std::string_view remainder_name(ViewSpec::Remainder remainder) {
  switch (remainder) {
    case ViewSpec::Remainder::keep:
      return "keep";
    case ViewSpec::Remainder::drop:
      return "drop";
    case ViewSpec::Remainder::pad:
      return "pad";
  }
  return "";
}

std::string_view missing_name(ViewSpec::Missing missing) {
  switch (missing) {
    case ViewSpec::Missing::keep:
      return "keep";
    case ViewSpec::Missing::fill:
      return "fill";
    case ViewSpec::Missing::skip:
      return "skip";
  }
  return "";
}

std::string_view edge_name(WindowSpec::Edge edge) {
  switch (edge) {
    case WindowSpec::Edge::drop:
      return "drop";
    case WindowSpec::Edge::pad:
      return "pad";
    case WindowSpec::Edge::partial:
      return "partial";
  }
  return "";
}

std::string_view shuffle_name(Order::Shuffle shuffle) {
  switch (shuffle) {
    case Order::Shuffle::none:
      return "none";
    case Order::Shuffle::global:
      return "global";
    case Order::Shuffle::block:
      return "block";
  }
  return "";
}

ViewSpec parse_view_spec(const std::string& text, const std::string& name, const std::string& where,
                         const ViewOptions& options) {
  try {
    ViewSpec spec;
    spec.as_decoded = options.as_decoded;
    spec.document =
        parse_json(without_comments(text, where), where, {.allow_nan = false, .unique_keys = true});
    const JsonRef root(spec.document, "");
    if (!root.is_object()) throw root.error("a view is a JSON object");
    allow_only(root,
               {"$schema", "name",    "group",    "level",   "sources", "variables", "select",
                "window",  "tensors", "batch",    "order",   "epochs",  "dtype",     "normalize",
                "missing", "formats", "xbatcher", "samples", "reserve", "split"},
               view_hints::kView);
    if (const auto schema = root.find("$schema")) schema->string();  // for editors
    if (const auto group = root.find("group")) group->string();      // chosen on opening the store
    if (const auto level = root.find("level")) parse_level(*level);  // the same
    if (const auto sources = root.find("sources")) {                 // the same
      parse_sources(*sources);
      for (const char* key : {"group", "level", "xbatcher"})
        if (const auto other = root.find(key))
          throw other->error(fmt::format(
              "a view with \"sources\" has no \"{}\"{}", key,
              std::string_view(key) == "group" ? ": name the \"group\" in a source" : ""));
    }
    if (options.level) spec.document["level"] = *options.level;
    const auto name_json = root.find("name");
    const ChosenPart chosen = choose_part(root, options.part, options.first_part);
    spec.split = chosen.split, spec.part = chosen.part;
    const auto of_part = [&](const char* key) { return find_of_part(root, chosen, key); };
    spec.name = (name_json ? checked_name(*name_json, name_json->string()) : name) + chosen.suffix;
    if (!is_file_name(spec.name))
      throw root.error(fmt::format("'{}' cannot be a view's name", spec.name));
    if (const auto variables = root.find("variables")) spec.variables = unique_strings(*variables);
    if (const auto select = root.find("select"))
      for (const auto& [dim, selector] : select->members())
        spec.select.emplace_back(dim, parse_selector(selector));
    const auto xbatcher = root.find("xbatcher");
    if (xbatcher) {
      for (const char* key : {"window", "batch", "tensors", "samples", "reserve", "split"})
        if (const auto other = root.find(key))
          throw other->error(fmt::format("a view has either \"xbatcher\" or \"{}\"", key));
      spec.xbatcher = parse_xbatcher(*xbatcher);
    } else {
      spec.window = parse_window(root.at("window"), spec.pad_value);
    }
    if (const auto tensors = root.find("tensors")) {
      for (const auto& [tensor, definition] : tensors->members())
        spec.tensors.push_back(parse_tensor(tensor, definition));
      if (spec.tensors.empty()) throw tensors->error("name at least one tensor");
    }
    if (const auto batch = of_part("batch")) {
      if (batch->is_object()) {
        allow_only(*batch, {"size", "remainder"}, view_hints::kBatch);
        if (const auto size = batch->find("size")) spec.batch_size = size->integer(1, kMaxBatch);
        if (const auto remainder = batch->find("remainder")) {
          const std::string value =
              choice(*remainder, {"keep", "drop", "pad"}, view_hints::kRemainders);
          spec.remainder = value == "keep"   ? ViewSpec::Remainder::keep
                           : value == "drop" ? ViewSpec::Remainder::drop
                                             : ViewSpec::Remainder::pad;
        }
      } else {
        spec.batch_size = batch->integer(1, kMaxBatch);
      }
    }
    if (const auto order = of_part("order")) {
      if (order->is_string())
        throw order->error(fmt::format(
            "expected an object; write {{\"shuffle\": \"{}\"}}",
            meant(order->string(), {"none", "global", "block"}, view_hints::kShuffles, "global")));
      allow_only(*order, {"shuffle", "seed", "buffer", "lanes", "span", "home", "by"},
                 view_hints::kOrder);
      if (const auto shuffle = order->find("shuffle")) {
        const std::string value =
            choice(*shuffle, {"none", "global", "block"}, view_hints::kShuffles);
        spec.order.shuffle = value == "none"     ? Order::Shuffle::none
                             : value == "global" ? Order::Shuffle::global
                                                 : Order::Shuffle::block;
      }
      if (const auto seed = order->find("seed"))
        spec.order.seed = static_cast<std::uint64_t>(seed->integer(0));
      if (const auto buffer = order->find("buffer"))
        spec.order.buffer = buffer->integer(1, 1 << 20);
      if (xbatcher && spec.order.shuffle != Order::Shuffle::none)
        throw order->error("xbatcher's batches have their own order; leave \"shuffle\" out");
      parse_lanes(*order, spec);
      parse_by(*order, root.find("sources"), spec);
    }
    if (const auto epochs = of_part("epochs")) parse_epochs(*epochs, spec);
    if (const auto dtype = root.find("dtype"); dtype && !options.as_decoded) {
      const std::string value =
          choice(*dtype, {"float16", "bfloat16", "float32", "float64"}, view_hints::kTypes);
      spec.dtype = value == "bfloat16" ? bfloat16() : parse_numpy_type(value);
    }
    if (const auto normalize = root.find("normalize"); normalize && !options.as_decoded)
      spec.normalize =
          parse_normalize(*normalize, options.read_file, options.mixed ? options.mixed->name : "");
    if (const auto missing = of_part("missing"); missing && !options.as_decoded) {
      if (missing->is_string())
        throw missing->error(fmt::format("expected an object; write {{\"nan\": \"{}\"}}",
                                         meant(missing->string(), {"keep", "fill", "skip"},
                                               view_hints::kMissingValues, "fill")));
      allow_only(*missing, {"nan", "value", "at_most", "variables"}, view_hints::kMissing);
      if (const auto nan = missing->find("nan")) {
        const std::string value =
            choice(*nan, {"keep", "fill", "skip"}, view_hints::kMissingValues);
        spec.missing = value == "keep"   ? ViewSpec::Missing::keep
                       : value == "fill" ? ViewSpec::Missing::fill
                                         : ViewSpec::Missing::skip;
      }
      if (const auto value = missing->find("value")) {
        if (spec.missing != ViewSpec::Missing::fill)
          throw value->error("it goes with \"nan\": \"fill\"");
        spec.fill_value = value->number();
      }
      spec.skip = parse_skip_rule(*missing, spec.missing == ViewSpec::Missing::skip);
      if (spec.missing == ViewSpec::Missing::skip && xbatcher)
        throw missing->error("xbatcher's batches cannot be skipped; take \"window\"");
    }
    if (const auto samples = root.find("samples")) {
      spec.samples = parse_samples(*samples);
      spec.list = parse_list(*samples, options.file_path);
      spec.weights = parse_weights(*samples, options.file_path);
    }
    if (const auto reserve = root.find("reserve")) {
      for (const auto& [dim, list] : reserve->members())
        spec.reserve.push_back(parse_offsets(dim, list));
      if (spec.reserve.empty()) throw reserve->error("name at least one dimension");
    }
    if (const auto formats = root.find("formats")) {
      spec.formats = unique_strings(*formats);
      for (const JsonRef& format : formats->elements())
        choice(format, {"npy", "safetensors", "npz", "zarr", "png"}, view_hints::kFormats);
    }
    for (const WindowSpec& window : spec.window)
      if (window.edge == WindowSpec::Edge::partial && spec.order.shuffle != Order::Shuffle::none)
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("window.{}.edge: \"partial\" makes short batches, and with a "
                                "shuffle any batch could be "
                                "one; take \"pad\", or no shuffle",
                                window.dim));
    if (options.mixed) prepare_for_mixture(spec, *options.mixed);
    return spec;
  } catch (Error& error) {
    throw error.at(where);
  }
}

}  // namespace batchfs
