#pragma once
// The groups of a store as datasets.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/dataset/dataset.h"
#include "engine/dataset/joined/stack_datasets.h"
#include "engine/view/sources_spec.h"
#include "engine/zarr/hierarchy.h"
#include "engine/zarr/node_path.h"
#include "tools/cli/store_options.h"

namespace batchfs {

/// A path without slashes at its ends.
std::string without_slashes(std::string path);

/// The path of a group from user input: "/model/hist/" is "model/hist", "/" the root. Throws
/// not_found with the nearest group, `where` as the place.
std::string find_group(const Hierarchy& hierarchy, const std::string& typed,
                       const std::string& where);

/// "; --group can be a, b": other groups with arrays, a few; empty if there are none.
std::string other_groups_text(const Hierarchy& hierarchy, const std::string& group);

/// Has the dataset a variable that a view can deliver?
bool has_view_variables(const Dataset& dataset);

/// Is the node at `path` the group, or below it?
bool is_in_group(const std::string& path, const std::string& group);

/// The datasets of a store, each made once: views of one group share its chunks.
class GroupDatasets {
 public:
  /// The store outlives it. An incomplete hierarchy is replaced as views name more arrays.
  explicit GroupDatasets(OpenedStore& opened) : opened_(opened) {}

  /// Bytes: --memory, or its default.
  std::uint64_t memory() const { return opened_.memory; }

  /// The dataset of --group, or of the root; for an image of several levels, that of --level or of
  /// the first level.
  std::shared_ptr<const Dataset> chosen();
  /// The dataset of the group in a view's key "group", else of the chosen one, with the arrays of
  /// other groups that the view names, "model/hist:tas". If arrays of the group do not fit
  /// together, it has only those that the view names. `json` is the view's text. Throws not_found,
  /// invalid_argument, and the errors of Dataset.
  std::shared_ptr<const Dataset> of_view(const std::string& json, const std::string& where) {
    return choose(json, where).dataset;
  }
  /// Like of_view(), with the level of an OME-Zarr image that the view's "level" or --level chose:
  /// the dataset then has its array as the variable "image", and otherwise only arrays that the
  /// view names.
  struct Chosen {
    std::shared_ptr<const Dataset> dataset;
    std::optional<std::int64_t> level;
  };
  Chosen choose(const std::string& json, const std::string& where);

  /// The datasets of a store of --store NAME=URL; this object for an empty name. Throws not_found
  /// with `path`, the place in the view that names it.
  GroupDatasets& of_store(const std::string& name, const std::string& path);

 private:
  Chosen choose(const Json& view, const std::string& where);
  /// The dataset of a view that may name the arrays `named`.
  Chosen of_names(const Json& view, const std::string& own, const std::set<std::string>& named);
  /// The sources of a view with "sources", joined.
  std::shared_ptr<const Dataset> joined(const Json& view);
  std::shared_ptr<const Dataset> of_source(const SourceSpec& source, const Json& view,
                                           const std::string& where);
  /// Array paths by name.
  using Arrays = std::map<std::string, std::string>;

  /// Looks for nodes that a view names.
  void find(const std::vector<std::string>& paths);
  std::shared_ptr<const Dataset> of(const std::string& group);
  std::shared_ptr<const Dataset> of_named(const std::string& group,
                                          const std::set<std::string>& named);
  Chosen of_level(const std::string& group, const std::set<std::string>& named, Arrays others,
                  const LevelChoice& choice);
  std::shared_ptr<const Dataset> with_others(const std::string& group,
                                             const std::set<std::string>& named,
                                             const Arrays& others);

  OpenedStore& opened_;
  std::map<std::string, std::shared_ptr<const Dataset>> datasets_;
  std::map<std::string, std::unique_ptr<GroupDatasets>> others_;  // of other stores, by name
  StackedArrays stacked_;
};

}  // namespace batchfs
