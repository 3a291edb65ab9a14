#pragma once
// How a tensor of windows lies in memory: its dimensions and their order, the dimensions joined
// into its stack, and where in it each variable goes.
//
// Definitions: "tensors" in batchfs-view(5).

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/dataset/dataset.h"
#include "engine/view/geometry.h"
#include "engine/view/samples/joined_axes.h"
#include "engine/view/spec.h"

namespace batchfs {

/// A tensor as its view defines it. Refers to the view's objects.
struct TensorSource {
  std::uint32_t number = 0;  // of the tensor
  const TensorDefinition& definition;
  DataType type;  // in the tensor, of every variable
  struct Channels {
    std::uint32_t number = 0;  // index into View::variables(), or into TensorSet::made
    const Variable* variable = nullptr;
    bool made = false;
  };
  std::vector<Channels> variables;
  const std::map<std::string, Positions>& selected;  // by dimension
  const std::vector<WindowDim>& windows;
  std::int64_t batch_size = 1;
  JoinedAxes& joined;
  /// Dimensions that made channels count as having: no channel is stacked along them.
  std::vector<std::string> field_dims = {};
};

struct TensorLayout {
  TensorSpec spec;                            // but for its padding and the names of its channels
  std::vector<VariablePlacement> placements;  // in the order of the source's variables
  /// In their place where the tensor is coarsened, one a variable: not yet in its parts.
  std::vector<VariablePlacement> coarsened;
  std::int64_t sample_bytes = 0;
  /// Dimensions of each variable that went into the stack, slowest first.
  std::vector<std::vector<std::string>> joined;
};

/// With windows of these `sizes`, one per window dimension. Throws invalid_argument, naming the
/// definition's path, for dimensions that do not go together and for a batch of 2^63 bytes or more.
TensorLayout lay_out(const TensorSource& tensor, const Dims& sizes);

/// A name for each position along the stack: the variable's, and its place along every dimension
/// that was joined, which is a label of the dataset's, or a number of steps from where the window
/// begins. Empty without a stack, and where there are more than 2^16.
std::vector<std::string> channel_names(const TensorSource& tensor, const TensorLayout& layout,
                                       const Dims& sizes, const Dataset& dataset);

/// Can the variable be read, and is it of a type that batches can have?
bool fits_tensor(const Variable& variable);

/// How tensors call a stored dimension: "sample" is the batch's own.
std::string tensor_dim(const std::string& dim);
/// A tensor's name of a variable's dimension: for a source with a finer grid "fine:y".
std::string tensor_dim(const Variable& variable, std::size_t d);

}  // namespace batchfs
