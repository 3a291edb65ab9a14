#pragma once
// A Zarr group as xarray sees it: named dimensions, coordinates, data variables.
// Source: xarray's Zarr backend, CF Conventions section 5 (coordinates).

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/array/array.h"
#include "engine/array/string_array.h"
#include "engine/dataset/cf.h"
#include "engine/dataset/dimension_names.h"
#include "engine/dataset/positions.h"
#include "engine/zarr/hierarchy.h"

namespace batchfs {

class AxisJoin;

/// Values in memory, C order, native byte order.
struct NdArray {
  DataType type;
  Dims shape;
  Buffer data;
};

struct Variable;

/// How a dimension of a concatenated dataset is divided among its parts. Immutable.
struct ConcatAxis {
  struct Part {
    std::string name;     // of its store
    Positions positions;  // by position of the dataset, those of the part; kNone: of another part
  };
  std::vector<Part> parts;
};

struct Variable {
  std::string name;  // in its group
  std::shared_ptr<const ArrayMetadata> metadata;
  // null when values cannot be read: `unsupported` holds the reason
  std::shared_ptr<const Array> array;
  /// In place of `array`, where the elements are strings of any length.
  std::shared_ptr<const StringArray> strings;
  /// In place of `array`, where the values follow from the metadata of an image.
  std::shared_ptr<const ArrayAxis> axis;
  std::string unsupported;
  std::vector<std::string> dims;  // one per dimension of `shape`
  // the array's, less a joined character dimension; for another source, that of the dataset's
  // dimensions
  Dims shape;
  /// For a variable of another source: per dimension, where its array has the positions; null, and
  /// beyond the end of the list: position by position.
  std::vector<std::shared_ptr<const AxisJoin>> joins;
  /// For concatenated stores: the arrays, in the order of `concat`, along dimension `concat_dim`.
  /// `array`, `metadata`, `cf` and `attributes` are then those of the first, and others may have
  /// chunks, codecs, fill values, scale and offset of their own.
  std::vector<std::shared_ptr<const Variable>> parts;
  std::shared_ptr<const ConcatAxis> concat;
  std::size_t concat_dim = 0;
  int part = -1;  // the number passed to part_of(); -1: not one part alone

  CfDecoding cf;  // how open_zarr decodes it
  bool is_coordinate = false;
  Json attributes = Json::object();  // without dimension and encoding attributes

  bool is_readable() const { return array != nullptr || strings != nullptr || axis != nullptr; }
  /// Null: position by position.
  const AxisJoin* join_along(std::size_t d) const {
    return d < joins.size() ? joins[d].get() : nullptr;
  }
  bool is_concatenated() const { return !parts.empty(); }
  /// The shape of its array; when concatenated, of all parts together.
  Dims own_shape() const;
  /// The same variable, of the array of one part. Precondition: is_concatenated().
  Variable part_of(std::size_t number) const;
  /// The name of the part's store; empty for a variable that is not a part.
  std::string part_name() const {
    return part < 0 ? std::string() : concat->parts[static_cast<std::size_t>(part)].name;
  }
};

/// Immutable after construction, but for lazily read coordinate values (thread-safe).
class Dataset {
 public:
  /// The group at `path` of an opened store. A store whose root is an array becomes a dataset of
  /// that one variable, named "values". With `only`, of its arrays only those of these names.
  /// `more` are arrays of other groups, path by name, beside them. A dimension of length 1 of one
  /// of these, "labels/cells:0", which has another length elsewhere, becomes a dimension of its
  /// own, "labels/cells:c". Dimensions without a coordinate inherit that of the nearest group above,
  /// if it has their length, as in xarray.DataTree; dimensions of images get theirs from the axes of
  /// their arrays, unless the group has an array of the name.
  Dataset(std::shared_ptr<Store> store, const Hierarchy& hierarchy, const std::string& path = "",
          const std::optional<std::set<std::string>>& only = std::nullopt,
          const std::map<std::string, std::string>& more = {});

  /// A dimension's index coordinate.
  struct Index {
    NdArray values;
    CfDecoding cf;  // how the values were decoded: times may be numbers where Variable::cf had none
  };

  /// The parts that join_sources() and concat_datasets() build a dataset from.
  struct Parts {
    std::uint64_t memory_limit = 0;
    std::vector<Variable> variables;
    std::vector<std::pair<std::string, std::int64_t>> dims;
    Json attributes = Json::object();
    std::map<std::string, std::shared_ptr<const Dataset>> indices;  // that have read them, by dim
    std::vector<std::string> other_names;              // of variables that a view could name
    std::map<std::string, std::string> repeated_dims;  // see repeated_dims()
    std::map<std::string, Index> values;               // that are read already, by dimension
  };
  explicit Dataset(Parts parts);
  ~Dataset();

  /// The group's path.
  const std::string& path() const { return path_; }
  const std::vector<Variable>& variables() const { return variables_; }
  /// Throws not_found with the nearest name.
  const Variable& variable(const std::string& name) const;
  const Variable* find(const std::string& name) const;

  /// Dimension names and lengths in order of first appearance over the variables.
  const std::vector<std::pair<std::string, std::int64_t>>& dims() const { return dims_; }
  /// Throws not_found with the nearest name.
  std::int64_t dim_size(const std::string& dim) const;

  /// Dimensions that some variable has twice, by the name of their repetition: {"c:2", "c"}. They
  /// are as long, and have the same index coordinate.
  const std::map<std::string, std::string>& repeated_dims() const { return repeated_dims_; }
  /// "c" for "c:2" of these; else `dim` itself.
  const std::string& original_dim(const std::string& dim) const;
  /// Has the variable a dimension that repeats `dim`?
  bool repeats_dim(const Variable& variable, const std::string& dim) const;

  const Json& attributes() const { return attributes_; }

  /// Limit of the memory of all readers together [bytes]: --memory.
  std::uint64_t memory_limit() const { return memory_limit_; }

  /// The index coordinate of a dimension (the 1-d variable of its name); nullptr when there is
  /// none.
  const Variable* index_of(const std::string& dim) const;
  /// The decoded values of a dimension's index coordinate, read once and kept. Throws no_memory
  /// where all labels together would take more than kFreeMetadata and half of memory_limit().
  const Index& index(const std::string& dim) const;
  const NdArray& index_values(const std::string& dim) const { return index(dim).values; }
  /// The labels at some positions of a dimension with an index coordinate: one copy in memory for
  /// all who ask for the same. Valid as long as the dataset. Throws as index().
  std::shared_ptr<const NdArray> labels_at(const std::string& dim,
                                           const Positions& positions) const;
  /// Bytes of all labels that are in memory now; 0 if the dataset is in `counted`, which it joins.
  std::uint64_t held_labels(std::set<const Dataset*>& counted) const;
  /// Reads all of them at once: from a remote store that is one round trip instead of many. Errors
  /// come from index_values().
  void load_index_values() const;

 private:
  const std::string path_;
  const std::uint64_t memory_limit_;
  std::vector<Variable> variables_;
  std::vector<std::pair<std::string, std::int64_t>> dims_;
  Json attributes_ = Json::object();
  std::map<std::string, std::string> problems_;  // of arrays that could not be used, by name
  std::map<std::string, std::shared_ptr<const Dataset>> indices_;
  std::vector<std::string> other_names_;
  std::map<std::string, std::string> repeated_dims_;
  struct Cache;
  /// Throws no_memory unless `bytes` more for the labels of the variable leave memory for batches.
  void check_labels(const Variable& variable, std::uint64_t bytes) const;

  std::unique_ptr<Cache> cache_;
};

}  // namespace batchfs
