#pragma once
// From the definitions of a view's tensors to the tensors, and what fills them.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/dataset/dataset.h"
#include "engine/view/axes.h"
#include "engine/view/spec.h"
#include "engine/view/tensors/tensor_set.h"

namespace batchfs {

/// Fills one TensorSet: add_tensor() or add_patches() for each tensor in turn, add_values() for
/// those that come with samples, then add_combinations(). Methods throw with the JSON path and the
/// nearest valid name. Not thread-safe.
///
///     TensorBuilder builder(dataset, spec, axes);
///     for (TensorDefinition& tensor : definitions) builder.add_tensor(std::move(tensor));
///     builder.add_combinations();
///     TensorSet tensors = builder.take();
class TensorBuilder {
 public:
  /// The arguments outlive it. Axes that windows slide along are known.
  TensorBuilder(const Dataset& dataset, const ViewSpec& spec, const ViewAxes& axes)
      : dataset_(dataset), spec_(spec), axes_(axes) {}

  /// The number of a variable that can be read, entering it; for a concatenated one that of its
  /// first part, which the others follow.
  std::uint32_t use_variable(const std::string& name, const std::string& path);
  /// A tensor of windows.
  void add_tensor(TensorDefinition definition);
  /// A tensor whose values come with the samples: TensorSpec::values.
  void add_values(TensorSpec tensor);
  /// A tensor of patches of one variable: its placement, and the shape of one patch, to which
  /// spec.shape of the first batch belongs.
  void add_patches(TensorSpec spec, VariablePlacement placement, Dims patch_shape,
                   std::int64_t patch_bytes);
  /// When all tensors are known: finds the made channels that are made of variables.
  void add_combinations();
  /// Throws unless "normalize" names variables of this view only.
  void check_normalized_names() const;

  /// Throws not_supported where the variable repeats a dimension of the windows and the view does
  /// not state whether windows slide along the repetition: xarray selects along both.
  void check_repeated_dims(const Variable& variable, const std::string& path) const;
  /// The type of a variable in a tensor: as decoded, float64 for normalised integers; floats cast
  /// to the view's dtype.
  DataType result_type(const Variable& variable) const;

  const TensorSet& set() const { return set_; }
  TensorSet take() { return std::move(set_); }

 private:
  void check_joined(const Variable& variable, std::size_t d, const Positions& stored) const;
  void add_converter(std::uint32_t tensor, std::uint32_t variable, const DataType& type);
  void add_converter(std::uint32_t tensor, const TensorSource::Channels& channels,
                     const DataType& type);
  Finish finish_of(std::uint32_t variable, const DataType& type);
  void add_combination(const MadeChannel& channel, const VariablePlacement& placement,
                       std::shared_ptr<const Converter> converter, ChannelPadding& padding);
  void add_coarsening(const VariablePlacement& placement);
  void add_operands(const std::string& path, const Variable& variable,
                    const VariablePlacement& operand, ChannelPadding& padding);
  bool has_durations(std::uint32_t tensor, const std::string& dim) const;
  void keep_padding(ChannelPadding padding);
  std::vector<TensorSource::Channels> use_channels(const TensorDefinition& tensor);
  DataType type_of(const TensorDefinition& tensor,
                   const std::vector<TensorSource::Channels>& channels) const;
  std::array<std::byte, 16> pad_element(const DataType& type, const std::string& path) const;

  const Dataset& dataset_;
  const ViewSpec& spec_;
  const ViewAxes& axes_;
  TensorSet set_;
};

/// Throws when files of the view's formats cannot have this name in them.
void check_tensor_name(const ViewSpec& spec, const std::string& name, const std::string& path);
/// Throws not_found with `path` and the nearest name.
const Variable& find_variable(const Dataset& dataset, const std::string& name,
                              const std::string& path);
/// Data variables that have every one of `dims`. Throws when there are none.
std::vector<std::string> default_variables(const Dataset& dataset, const ViewSpec& spec,
                                           const std::vector<std::string>& dims);

}  // namespace batchfs
