#include "engine/view/plan_check.h"

#include <algorithm>
#include <exception>
#include <vector>

#include <fmt/format.h>

#include "engine/view/tensors/tensor_set.h"
#include "engine/view/view.h"

namespace batchfs {

namespace {

/// Adds and multiplies, and remembers whether a result did not fit.
class Checked {
 public:
  std::int64_t add(std::int64_t a, std::int64_t b) {
    std::int64_t sum = 0;
    if (__builtin_add_overflow(a, b, &sum)) fits_ = false;
    return sum;
  }
  std::int64_t multiply(std::int64_t a, std::int64_t b) {
    std::int64_t product = 0;
    if (__builtin_mul_overflow(a, b, &product)) fits_ = false;
    return product;
  }
  bool fits() const { return fits_; }

 private:
  bool fits_ = true;
};

class PlanCheck {
 public:
  PlanCheck(const View& view, const BatchPlan& plan) : view_(view), plan_(plan) {
    require(plan.shapes.size() == view.tensors().size(), "shapes of other tensors", 0);
    for (std::size_t t = 0; t < plan.shapes.size(); ++t) {
      const std::int64_t itemsize = view.tensors()[t].type.itemsize;
      const std::int64_t elements = element_count(plan.shapes[t]);
      tensors_.push_back({Checked().multiply(elements, itemsize), itemsize, elements});
    }
    for (const auto& combination : view.tensor_set().combinations)
      tensors_.push_back(
          {Checked().multiply(combination->sample_bytes(), plan.shapes[combination->tensor()][0]),
           sizeof(double), 0});
  }

  void run() {
    check_chunks();
    for (const Padding& padding : plan_.paddings) check_box(padding);
    for (const Padding& padding : plan_.combined_paddings) check_box(padding);
    for (std::size_t t = 0; t < plan_.padded.size(); ++t) fill(t, plan_.padded[t]);
    check_made();
    check_given();
    check_combined();
    for (std::size_t t = 0; t < tensors_.size(); ++t)
      if (tensors_[t].filled != tensors_[t].elements)
        fail(fmt::format("{} of {} elements are planned", tensors_[t].filled, tensors_[t].elements),
             t);
  }

 private:
  struct Tensor {
    std::int64_t bytes, itemsize, elements;
    std::int64_t filled = 0;  // elements
  };

  [[noreturn]] void fail(const std::string& what, std::size_t tensor) const {
    const auto& tensors = view_.tensors();
    throw Error(ErrorCode::internal,
                fmt::format("the plan of the batch is wrong in '{}': {}; this is an error of "
                            "batchfs, please report it",
                            tensor < tensors.size() ? tensors[tensor].name
                                                    : fmt::format("operands {}", tensor),
                            what));
  }
  void require(bool holds, const char* what, std::size_t tensor) const {
    if (!holds) fail(what, tensor);
  }

  void fill(std::size_t tensor, std::int64_t elements) {
    require(tensor < tensors_.size(), "there is no such tensor", tensor);
    Checked checked;
    tensors_[tensor].filled = checked.add(tensors_[tensor].filled, elements);
    require(elements >= 0 && checked.fits(), "too many elements", tensor);
  }

  /// Checks that a box and its repetitions lie in the tensor; returns their elements.
  std::int64_t elements_inside(std::uint32_t tensor, std::int64_t offset, const Dims& shape,
                               const Dims& strides, const Repeat* repeat) const {
    require(tensor < tensors_.size(), "there is no such tensor", tensor);
    require(shape.size() == strides.size(), "a box has other dimensions than its strides", tensor);
    Checked checked;
    std::int64_t first = offset, last = offset, elements = 1;
    const auto along = [&](std::int64_t count, std::int64_t stride) {
      elements = checked.multiply(elements, count);
      require(count >= 0, "a box of negative length", tensor);
      const std::int64_t way = checked.multiply(std::max<std::int64_t>(count, 1) - 1, stride);
      (way < 0 ? first : last) = checked.add(way < 0 ? first : last, way);
    };
    for (std::size_t d = 0; d < shape.size(); ++d) along(shape[d], strides[d]);
    if (repeat != nullptr) {
      require(repeat->counts.size() == repeat->strides.size(), "a wrong repetition", tensor);
      for (std::size_t d = 0; d < repeat->counts.size(); ++d)
        along(repeat->counts[d], repeat->strides[d]);
    }
    last = checked.add(last, tensors_[tensor].itemsize);
    require(checked.fits(), "a box that cannot be addressed", tensor);
    if (elements > 0 && (first < 0 || last > tensors_[tensor].bytes))
      fail(fmt::format("a box from byte {} to {} of {}", first, last, tensors_[tensor].bytes),
           tensor);
    return elements;
  }

  void check_box(const Padding& padding) const {
    elements_inside(padding.tensor, padding.offset, padding.shape, padding.strides, nullptr);
  }

  void add_part(const Part& part, const Dims& source_shape) {
    const Dims &start = part.source.start, &shape = part.source.shape;
    require(start.size() == source_shape.size() && shape.size() == source_shape.size(),
            "a box has other dimensions than its source", part.tensor);
    for (std::size_t d = 0; d < shape.size(); ++d)
      require(start[d] >= 0 && shape[d] >= 0 && start[d] <= source_shape[d] &&
                  shape[d] <= source_shape[d] - start[d],
              "a box reaches over the end of its source", part.tensor);
    require(part.repeat < 0 || static_cast<std::size_t>(part.repeat) < plan_.repeats.size(),
            "there is no such repetition", part.tensor);
    const Repeat* const repeat =
        part.repeat < 0 ? nullptr : &plan_.repeats[static_cast<std::size_t>(part.repeat)];
    fill(part.tensor, elements_inside(part.tensor, part.offset, shape, part.strides, repeat));
  }

  void check_chunks() {
    std::uint64_t parts = 0;
    for (const ChunkUse& use : plan_.chunks) {
      require(use.variable < view_.variables().size(), "there is no such variable", 0);
      const ChunkGrid& grid = view_.variables()[use.variable]->array->grid();
      require(use.chunk >= 0 && use.chunk < grid.chunk_count(), "there is no such chunk", 0);
      require(use.first_part == parts, "parts of two chunks", 0);
      parts += use.part_count;
      require(parts <= plan_.parts.size(), "parts are missing", 0);
      for (std::uint32_t i = use.first_part; i < parts; ++i)
        add_part(plan_.parts[i], grid.chunk_shape());
    }
    require(parts == plan_.parts.size(), "parts of no chunk", 0);
  }

  void check_made() {
    for (const MadePart& made : plan_.made) {
      require(made.channel < view_.tensor_set().made.size(), "there is no such channel", 0);
      add_part(made.part, view_.tensor_set().made[made.channel].variable().shape);
    }
  }

  void check_given() {
    for (const GivenValue& value : plan_.given) {
      require(
          value.tensor < view_.tensors().size() && view_.tensors()[value.tensor].values != nullptr,
          "no values are given", value.tensor);
      const std::int64_t itemsize = tensors_[value.tensor].itemsize;
      const auto values =
          static_cast<std::int64_t>(view_.tensors()[value.tensor].values->size()) / itemsize;
      require(value.sample >= 0 && value.sample < values, "no value is given", value.tensor);
      fill(value.tensor, elements_inside(value.tensor, value.offset, {}, {}, nullptr));
    }
  }

  void check_combined() {
    for (const CombinedPart& part : plan_.combined) {
      require(part.combination < view_.tensor_set().combinations.size(), "there is no such channel",
              part.tensor);
      const AssembledChannel& channel = *view_.tensor_set().combinations[part.combination];
      const AssembledChannel::Target target = channel.target();
      fill(part.tensor,
           elements_inside(part.tensor, part.offset, target.shape, target.strides, &target.repeat));
      Tensor& operands = tensors_[view_.tensors().size() + part.combination];
      const std::int64_t bytes = channel.sample_bytes();
      require(
          part.operands >= 0 && bytes <= operands.bytes && part.operands <= operands.bytes - bytes,
          "operands that are not there", part.tensor);
      operands.elements += bytes / operands.itemsize;  // of the samples that have the channel
    }
  }

  const View& view_;
  const BatchPlan& plan_;
  std::vector<Tensor> tensors_;  // followed by the operands
};

}  // namespace

void check_plan(const View& view, const BatchPlan& plan) { PlanCheck(view, plan).run(); }

std::optional<Error> find_mistake(const View& view, const BatchPlan& plan) {
  try {
    check_plan(view, plan);
    return std::nullopt;
  } catch (...) {
    return error_of(std::current_exception());
  }
}

}  // namespace batchfs
