#pragma once
// What the two kinds of views, windows and xbatcher, have in common.

#include <map>

#include "engine/view/geometry.h"
#include "engine/view/spec.h"

namespace batchfs {

class BaseView : public View {
 public:
  BaseView(std::shared_ptr<const Dataset> dataset, ViewSpec spec);

  const std::string& name() const override { return spec_.name; }
  const std::vector<TensorSpec>& tensors() const override { return tensors_; }
  const std::vector<std::string>& formats() const override { return spec_.formats; }
  std::int64_t epochs() const override { return spec_.epochs; }
  bool needs_scan() const override { return false; }
  ViewScan scan() const override;
  std::shared_ptr<const View> with_samples(std::shared_ptr<const SampleIndex> index) const override;
  const Order* order() const override { return nullptr; }
  std::shared_ptr<const View> with_order(const Order& order) const override;
  std::int64_t mixed_samples() const override { return 1; }
  std::vector<Dims> window_starts(std::int64_t epoch, std::int64_t batch) const override;
  const Positions& selected(const std::string& dim) const override { return selected_.at(dim); }
  const std::vector<const Variable*>& variables() const override { return variables_; }
  const Converter& converter(std::uint32_t tensor, std::uint32_t variable) const override {
    return *converters_.at({tensor, variable});
  }
  const Converters& converters() const override { return converters_; }
  std::int64_t rank_batches(std::int64_t rank, std::int64_t world) const override;
  Json schema() const override;
  Json resolved() const override;
  Json provenance(std::int64_t epoch, std::int64_t batch) const override;
  const std::vector<Coordinate>& coordinates() const override { return coordinates_; }
  BatchPlan plan(std::int64_t epoch, std::int64_t batch) const override;

 protected:
  /// The windows of a batch, in row order.
  virtual std::vector<Row> rows(std::int64_t epoch, std::int64_t batch) const = 0;

  /// Throws when files of the view's formats cannot have this name in them.
  void check_tensor_name(const std::string& name, const std::string& path) const;
  /// Throws not_found with `path` and the nearest name.
  const Variable& find_variable(const std::string& name, const std::string& path) const;
  /// The number of a variable that can be read, entering it in variables_. Throws with `path`.
  std::uint32_t use_variable(const std::string& name, const std::string& path);
  /// The type of a variable in a tensor: as decoded, float64 for normalised integers; floats cast
  /// to the view's dtype.
  DataType result_type(const Variable& variable) const;
  void add_converter(std::uint32_t tensor, std::uint32_t variable, const DataType& type);
  /// Data variables that have every one of `dims`. Throws when there are none.
  std::vector<std::string> default_variables(const std::vector<std::string>& dims) const;
  /// What stands for elements of a tensor that lie outside the selection: the view's pad_value;
  /// else NaN, NaT, false or 0. Throws when the type cannot hold it.
  std::array<std::byte, 16> pad_element(const DataType& type, const std::string& path) const;
  /// Throws unless "normalize" names variables of this view only.
  void check_normalized_names() const;
  void collect_coordinates();
  /// Index values along a dimension after selection; an empty type when it has no coordinate.
  const Coordinate* index_coordinate(const std::string& dim) const;

  std::shared_ptr<const Dataset> dataset_;
  ViewSpec spec_;
  std::map<std::string, Positions> selected_;
  std::vector<WindowDim> window_dims_;
  std::vector<TensorSpec> tensors_;
  std::vector<const Variable*> variables_;
  Converters converters_;
  std::map<std::uint32_t, std::shared_ptr<const Normalization>> normalizations_;  // by variable
  std::vector<VariablePlacement> placements_;
  std::vector<Coordinate> coordinates_;
};

/// Can the variable be read, and is it of a type that batches can have?
bool fits_tensor(const Variable& variable);

std::shared_ptr<const View> make_window_view(std::shared_ptr<const Dataset> dataset, ViewSpec spec);
std::shared_ptr<const View> make_xbatcher_view(std::shared_ptr<const Dataset> dataset,
                                               ViewSpec spec);

}  // namespace batchfs
