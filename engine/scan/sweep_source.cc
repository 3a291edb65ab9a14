#include "engine/scan/sweep_source.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include <fmt/format.h>

#include "engine/dataset/joined/axis_join.h"
#include "engine/view/made/combination.h"

namespace batchfs {

namespace {

/// Values of a channel of time and place that are made at a time.
constexpr std::int64_t kMadePiece = 1 << 17;

class ArraySource final : public SweepSource {
 public:
  explicit ArraySource(const Variable& variable)
      : variable_(variable),
        converter_(std::make_shared<const Converter>(variable.cf, float64())) {}

  const std::string& name() const override { return variable_.name; }
  Dims chunk_shape() const override { return variable_.array->grid().chunk_shape(); }
  std::uint64_t chunk_bytes() const override { return variable_.array->chunk_bytes(); }
  std::uint64_t chunk_elements() const override {
    return variable_.array->chunk_bytes() / std::max(1u, variable_.array->type().itemsize);
  }
  void read(Engine& engine, const Box& box, std::shared_ptr<Buffer> values,
            Done done) const override {
    engine.arrays().read_box(variable_.array, box, converter_, values->data(),
                             c_strides(box.shape, sizeof(double)), values, std::move(done),
                             ArrayReads::Purpose::scan);
  }

 private:
  const Variable& variable_;
  std::shared_ptr<const Converter> converter_;
};

CfDecoding as_is() {
  CfDecoding decoding;
  decoding.stored = decoding.decoded = decoding.arithmetic = float64();
  return decoding;
}

/// A channel of time and place.
class FormulaSource final : public SweepSource {
 public:
  explicit FormulaSource(const MadeChannel& channel) : channel_(channel) {
    const std::vector<std::int64_t> shape(channel.variable().shape.begin(),
                                          channel.variable().shape.end());
    chunk_ = Dims(shape.size(), 1);
    std::int64_t elements = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
      chunk_[d] =
          std::clamp<std::int64_t>(kMadePiece / elements, 1, std::max<std::int64_t>(1, shape[d]));
      elements *= chunk_[d];
    }
  }

  const std::string& name() const override { return channel_.variable().name; }
  Dims chunk_shape() const override { return chunk_; }
  std::uint64_t chunk_bytes() const override { return chunk_elements() * sizeof(double); }
  std::uint64_t chunk_elements() const override {
    return static_cast<std::uint64_t>(element_count(chunk_));
  }
  void read(Engine&, const Box& box, std::shared_ptr<Buffer> values, Done done) const override {
    channel_.write(box, converter_, values->data(), c_strides(box.shape, sizeof(double)), nullptr);
    done(nullptr);
  }

 private:
  const MadeChannel& channel_;
  Dims chunk_;
  const Converter converter_{as_is(), float64()};
};

/// A channel of variables: boxes of all of them are read and combined. The chunks are those of the
/// variable that is the first to have each dimension, of those with the most dimensions.
class CombinedSource final : public SweepSource {
 public:
  CombinedSource(const View& view, const MadeChannel& channel) : channel_(channel) {
    const std::vector<std::string>& dims = channel.variable().dims;
    chunk_ = Dims(dims.size());
    for (std::size_t i = 0; i < channel.spec().of.size(); ++i) {
      const Variable& operand = view.dataset()->variable(channel.spec().of[i]);
      bool is_joined = operand.is_concatenated();
      for (std::size_t d = 0; d < operand.dims.size(); ++d)
        is_joined = is_joined || operand.join_along(d) != nullptr;
      if (is_joined || operand.array == nullptr)
        throw Error(ErrorCode::not_supported,
                    fmt::format("{}.of[{}]: '{}' is of several stores or sources, and statistics "
                                "of channels of such variables are not supported",
                                channel.spec().path, i, operand.name));
      operands_.push_back(&operand);
      converters_.push_back(std::make_shared<const Converter>(operand.cf, float64()));
    }
    std::vector<const Variable*> by_rank = operands_;
    std::stable_sort(by_rank.begin(), by_rank.end(), [](const Variable* a, const Variable* b) {
      return a->dims.size() > b->dims.size();
    });
    for (const Variable* operand : by_rank)
      for (std::size_t d = 0; d < operand->dims.size(); ++d)
        if (std::int64_t& length = chunk_[place_of(operand->dims[d])]; length == 0)
          length = operand->array->grid().chunk_shape()[d];
  }

  const std::string& name() const override { return channel_.variable().name; }
  Dims chunk_shape() const override { return chunk_; }
  std::uint64_t chunk_bytes() const override { return chunk_elements() * sizeof(double); }
  /// With its operands.
  std::uint64_t chunk_elements() const override {
    return static_cast<std::uint64_t>(element_count(chunk_)) * (operands_.size() + 1);
  }

  void read(Engine& engine, const Box& box, std::shared_ptr<Buffer> values,
            Done done) const override {
    VariablePlacement whole;  // of the box as a tensor
    const Dims strides = c_strides(box.shape, sizeof(double));
    for (std::size_t d = 0; d < box.shape.size(); ++d) {
      AxisPlacement axis;
      axis.selected = Positions::range(0, box.shape[d]);
      axis.stride = strides[d];
      whole.axes.push_back(std::move(axis));
    }
    auto state = std::make_shared<State>(
        Combination(channel_, 0, whole, std::make_shared<const Converter>(as_is(), float64())));
    state->operands = Buffer(static_cast<std::size_t>(state->combination.sample_bytes()));
    state->left = operands_.size();
    state->values = std::move(values);
    state->done = std::move(done);
    for (std::size_t i = 0; i < operands_.size(); ++i) read_operand(engine, box, i, state);
  }

 private:
  struct State {
    explicit State(Combination of) : combination(std::move(of)) {}
    const Combination combination;
    Buffer operands;
    std::shared_ptr<Buffer> values;
    Done done;
    std::mutex mutex;  // guards what follows
    std::size_t left = 0;
    std::exception_ptr error;
  };

  std::size_t place_of(const std::string& dim) const {
    const std::vector<std::string>& dims = channel_.variable().dims;
    return static_cast<std::size_t>(std::find(dims.begin(), dims.end(), dim) - dims.begin());
  }

  void read_operand(Engine& engine, const Box& box, std::size_t i,
                    const std::shared_ptr<State>& state) const {
    const Variable& operand = *operands_[i];
    const VariablePlacement placement = state->combination.operand(i, operand, 0, 1);
    Box own;
    Dims strides;
    for (std::size_t d = 0; d < operand.dims.size(); ++d) {
      own.start.push_back(box.start[place_of(operand.dims[d])]);
      own.shape.push_back(box.shape[place_of(operand.dims[d])]);
      strides.push_back(placement.axes[d].stride);
    }
    Repeat repeat;
    for (const AxisPlacement& axis : placement.repeated) {
      repeat.counts.push_back(axis.extent());
      repeat.strides.push_back(axis.stride);
    }
    std::byte* const out = state->operands.data() + placement.base;
    const auto finished = [state, own, strides, repeat, out](std::exception_ptr error) {
      if (!error && !repeat.counts.empty())
        repeat_strided(own.shape, sizeof(double), out, strides, repeat);
      finish(*state, error);
    };
    try {
      engine.arrays().read_box(operand.array, own, converters_[i], out, strides, state, finished,
                               ArrayReads::Purpose::scan);
    } catch (...) {
      finish(*state, std::current_exception());
    }
  }

  /// An operand has arrived or failed. The last one combines them.
  static void finish(State& state, std::exception_ptr error) {
    {
      const std::lock_guard lock(state.mutex);
      if (error && !state.error) state.error = error;
      if (--state.left > 0) return;
      error = state.error;
    }
    if (!error) state.combination.write(state.operands.data(), state.values->data());
    state.done(error);
  }

  const MadeChannel& channel_;
  std::vector<const Variable*> operands_;
  std::vector<std::shared_ptr<const Converter>> converters_;
  Dims chunk_;
};

}  // namespace

std::shared_ptr<const SweepSource> array_source(const Variable& variable) {
  return std::make_shared<const ArraySource>(variable);
}

std::shared_ptr<const SweepSource> made_source(const View& view, std::uint32_t number) {
  const MadeChannel& channel = view.made()[number];
  if (channel.is_combined()) return std::make_shared<const CombinedSource>(view, channel);
  return std::make_shared<const FormulaSource>(channel);
}

}  // namespace batchfs
