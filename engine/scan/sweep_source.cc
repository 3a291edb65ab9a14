#include "engine/scan/sweep_source.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "engine/dataset/logarithms.h"
#include "engine/scan/operand_reads.h"
#include "engine/view/made/combination.h"
#include "engine/view/tensors/tensor_set.h"

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

class LogarithmSource final : public SweepSource {
 public:
  LogarithmSource(std::shared_ptr<const SweepSource> values, double scale)
      : values_(std::move(values)), scale_(scale) {}

  const std::string& name() const override { return values_->name(); }
  Dims chunk_shape() const override { return values_->chunk_shape(); }
  std::uint64_t chunk_bytes() const override { return values_->chunk_bytes(); }
  std::uint64_t chunk_elements() const override { return values_->chunk_elements(); }
  void read(Engine& engine, const Box& box, std::shared_ptr<Buffer> values,
            Done done) const override {
    values_->read(engine, box, values,
                  [values, count = box.elements(), scale = scale_,
                   done = std::move(done)](std::exception_ptr error) {
                    if (!error)
                      take_logarithms(reinterpret_cast<double*>(values->data()), count, scale);
                    done(std::move(error));
                  });
  }

 private:
  const std::shared_ptr<const SweepSource> values_;
  const double scale_;
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

/// Copies the elements of a read that has arrived to where they go. `strides` in bytes.
void scatter(const OperandReads::Read& read, const double* values, std::byte* out,
             const Dims& strides) {
  const std::size_t rank = read.places.size();
  const Dims from = c_strides(read.box.shape, 1);
  Dims at(rank);
  for (;;) {
    std::int64_t source = 0, target = 0;
    for (std::size_t d = 0; d < rank; ++d) {
      const auto& [index, place] = read.places[d][static_cast<std::size_t>(at[d])];
      source += index * from[d];
      target += place * strides[d];
    }
    *reinterpret_cast<double*>(out + target) = values[source];
    std::size_t d = rank;
    while (d > 0 && at[d - 1] + 1 == static_cast<std::int64_t>(read.places[d - 1].size()))
      at[--d] = 0;
    if (d == 0) return;
    ++at[d - 1];
  }
}

/// A channel of variables: boxes of all of them are read and combined. The chunks are those of the
/// variable that is the first to have each dimension, of those with the most dimensions, and before
/// others of those whose positions are the channel's.
class CombinedSource final : public SweepSource {
 public:
  CombinedSource(const View& view, const MadeChannel& channel) : channel_(channel) {
    const std::vector<std::string>& dims = channel.variable().dims;
    chunk_ = Dims(dims.size());
    for (std::size_t i = 0; i < channel.spec().of.size(); ++i) {
      const Variable& variable = view.dataset()->variable(channel.spec().of[i]);
      Operand& operand = operands_.emplace_back(Operand{&variable, OperandReads(variable), {}});
      for (std::size_t p = 0; p < operand.reads.parts(); ++p) {
        const Variable& part = operand.reads.part(p);
        if (part.array == nullptr)
          throw Error(ErrorCode::not_supported,
                      fmt::format("{}.of[{}]: '{}': {}", channel.spec().path, i, variable.name,
                                  part.unsupported));
        operand.converters.push_back(std::make_shared<const Converter>(part.cf, float64()));
      }
    }
    std::vector<const Operand*> sorted;
    for (const Operand& operand : operands_) sorted.push_back(&operand);
    std::stable_sort(sorted.begin(), sorted.end(), [](const Operand* a, const Operand* b) {
      if (a->reads.is_direct() != b->reads.is_direct()) return a->reads.is_direct();
      return a->variable->dims.size() > b->variable->dims.size();
    });
    for (const Operand* operand : sorted)
      for (std::size_t d = 0; d < operand->variable->dims.size(); ++d)
        if (std::int64_t& length = chunk_[place_of(operand->variable->dims[d])]; length == 0)
          length = std::min(operand->reads.part(0).array->grid().chunk_shape()[d],
                            std::max<std::int64_t>(1, operand->variable->shape[d]));
  }

  const std::string& name() const override { return channel_.variable().name; }
  Dims chunk_shape() const override { return chunk_; }
  std::uint64_t chunk_bytes() const override { return chunk_elements() * sizeof(double); }
  /// With its operands; those that are not direct are read into memory of their own.
  std::uint64_t chunk_elements() const override {
    std::uint64_t copies = operands_.size() + 1;
    for (const Operand& operand : operands_)
      if (!operand.reads.is_direct()) ++copies;
    return static_cast<std::uint64_t>(element_count(chunk_)) * copies;
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
    std::fill_n(reinterpret_cast<double*>(state->operands.data()),
                state->operands.size() / sizeof(double), std::numeric_limits<double>::quiet_NaN());
    state->left = operands_.size();
    state->values = std::move(values);
    state->done = std::move(done);
    for (std::size_t i = 0; i < operands_.size(); ++i) read_operand(engine, box, i, state);
  }

 private:
  struct Operand {
    const Variable* variable;
    OperandReads reads;
    std::vector<std::shared_ptr<const Converter>> converters;  // of each part
  };
  struct State {
    explicit State(Combination of) : combination(std::move(of)) {}
    const Combination combination;
    Buffer operands;
    std::shared_ptr<Buffer> values;
    Done done;
    std::mutex mutex;  // guards the fields below
    std::size_t left = 0;
    std::exception_ptr error;
  };
  /// Reads of one operand, in one box.
  struct Pending {
    explicit Pending(std::size_t count) : left(count) {}
    std::mutex mutex;  // guards the fields below
    std::size_t left;
    std::exception_ptr error;

    /// One of them has ended; returns whether it was the last, and the error.
    std::pair<bool, std::exception_ptr> end(std::exception_ptr failed) {
      const std::lock_guard lock(mutex);
      if (failed && !error) error = failed;
      return {--left == 0, error};
    }
  };

  std::size_t place_of(const std::string& dim) const {
    const std::vector<std::string>& dims = channel_.variable().dims;
    return static_cast<std::size_t>(std::find(dims.begin(), dims.end(), dim) - dims.begin());
  }

  void read_operand(Engine& engine, const Box& box, std::size_t i,
                    const std::shared_ptr<State>& state) const {
    const Operand& operand = operands_[i];
    const std::vector<std::string>& dims = operand.variable->dims;
    const VariablePlacement placement = state->combination.operand(i, *operand.variable, 0, 1);
    Box own;
    Dims strides;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      own.start.push_back(box.start[place_of(dims[d])]);
      own.shape.push_back(box.shape[place_of(dims[d])]);
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
    if (!operand.reads.is_direct()) return gather(engine, operand, own, out, strides, finished);
    try {
      engine.arrays().read_box(operand.variable->array, own, operand.converters[0], out, strides,
                               state, finished, ArrayReads::Purpose::scan);
    } catch (...) {
      finish(*state, std::current_exception());
    }
  }

  /// Reads an operand of another source or of several stores, chunk by chunk.
  template <class Finished>
  static void gather(Engine& engine, const Operand& operand, const Box& own, std::byte* out,
                     const Dims& strides, const Finished& finished) {
    const std::vector<OperandReads::Read> reads = operand.reads.of(own);
    if (reads.empty()) return finished(nullptr);
    const auto pending = std::make_shared<Pending>(reads.size());
    for (const OperandReads::Read& read : reads) {
      const auto values =
          std::make_shared<Buffer>(read.box.elements() * static_cast<std::int64_t>(sizeof(double)));
      const auto arrived = [pending, values, read, out, strides,
                            finished](std::exception_ptr error) {
        if (!error) scatter(read, reinterpret_cast<const double*>(values->data()), out, strides);
        if (const auto [last, failed] = pending->end(error); last) finished(failed);
      };
      try {
        engine.arrays().read_box(operand.reads.part(read.part).array, read.box,
                                 operand.converters[read.part], values->data(),
                                 c_strides(read.box.shape, sizeof(double)), values, arrived,
                                 ArrayReads::Purpose::scan);
      } catch (...) {
        arrived(std::current_exception());
      }
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
    if (!error) state.combination.write(state.operands.data(), state.values->data(), {});
    state.done(error);
  }

  const MadeChannel& channel_;
  std::vector<Operand> operands_;
  Dims chunk_;
};

}  // namespace

std::shared_ptr<const SweepSource> logarithms_of(std::shared_ptr<const SweepSource> values,
                                                 double scale) {
  return std::make_shared<const LogarithmSource>(std::move(values), scale);
}

std::shared_ptr<const SweepSource> array_source(const Variable& variable) {
  return std::make_shared<const ArraySource>(variable);
}

std::shared_ptr<const SweepSource> made_source(const View& view, std::uint32_t number) {
  const MadeChannel& channel = view.tensor_set().made[number];
  if (channel.is_combined()) return std::make_shared<const CombinedSource>(view, channel);
  return std::make_shared<const FormulaSource>(channel);
}

}  // namespace batchfs
