#pragma once
// "split" of a view as written: parts that share no position, see batchfs-view(5).

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/json.h"
#include "engine/dataset/calendar_fields.h"
#include "engine/dataset/selector.h"
#include "engine/view/samples/duration.h"

namespace batchfs {

struct SplitSpec {
  /// A box of labels; dimensions that it does not name are whole.
  struct Region {
    std::vector<std::pair<std::string, Selector>> box;
    std::string path;  // in the file, for messages
  };
  struct Part {
    std::string name;
    bool rest = false;            // all that no region holds
    std::vector<Region> regions;  // their union
    double fraction = 0;          // of blocks or groups
    std::string path;
  };
  /// Length of blocks or of the gap along a dimension: positions, or a length of time.
  struct Length {
    std::string dim;
    std::int64_t positions = 0;
    std::optional<Duration> duration;
    std::string path;
  };
  /// Positions with equal values of a variable, or of a field of its dates, stay together.
  struct Group {
    std::string variable;
    std::optional<CalendarField> field;  // nullopt: the value
    std::string path;
  };

  std::vector<Part> parts;  // in the order of the file; with folds "train" and "val"
  std::vector<Length> blocks;
  std::vector<Group> groups;  // without them and blocks, parts have regions
  std::vector<Length> gap;
  std::int64_t folds = 0;  // 0: fractions
  std::uint64_t seed = 0;
  bool by_hash = false;     // a block's part depends on its labels alone
  std::string path;         // of "parts", "blocks" or "groups"
  std::string shares_path;  // of "fractions" or "folds"

  bool is_drawn() const { return !blocks.empty() || !groups.empty(); }
  /// Names of the resulting views: parts, or "fold-0-train", "fold-0-val", ...
  std::vector<std::string> names() const;
};

/// One of SplitSpec::names().
struct SplitPart {
  std::string name;
  std::size_t part = 0;   // of SplitSpec::parts
  std::int64_t fold = 0;  // with folds
};

/// The value of "split". Throws invalid_argument with the JSON path.
SplitSpec parse_split(const JsonRef& json);

/// Throws not_found, with `where` in front and the nearest name.
SplitPart find_part(const SplitSpec& split, const std::string& name, const std::string& where);

/// The names of the views that a view file makes; empty if it makes one, which has no "split" or
/// names its part. Throws as parse_view_spec().
std::vector<std::string> split_names(const std::string& json, const std::string& where);

/// Which part of its split a view is.
struct ChosenPart {
  std::optional<SplitSpec> split;
  SplitPart part;
  std::string suffix;  // of the view's name: empty, or "-val"
};

/// `asked`: the part that the command names; `first`: without a name, the first one. Throws
/// invalid_argument for a part without a split, and for a split without a part.
ChosenPart choose_part(const JsonRef& view, const std::optional<std::string>& asked, bool first);

/// Returns a key of the view, or its replacement in "with" of the part.
std::optional<JsonRef> find_of_part(const JsonRef& view, const ChosenPart& chosen,
                                    std::string_view key);

/// "split" of view.json: as written, with the part and without overrides, which are resolved there.
Json split_json(const Json& written, const SplitPart& part);

}  // namespace batchfs
