#include "engine/scan/sweep.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <set>

#include "engine/view/rows/reached.h"

namespace batchfs {

std::int64_t touched_chunks(const Variable& variable,
                            const std::vector<const Positions*>& selected) {
  std::int64_t chunks = 1;
  for (std::size_t d = 0; d < selected.size(); ++d) {
    const std::int64_t here = chunks_along(*selected[d], variable.array->grid().chunk_shape()[d]);
    if (__builtin_mul_overflow(chunks, here, &chunks))
      throw Error(ErrorCode::not_supported, "more than 2^63 chunks", variable.name);
  }
  return chunks;
}

Sweep::Sweep(std::shared_ptr<const SweepSource> source,
             const std::vector<const Positions*>& selected, std::size_t fastest)
    : source_(std::move(source)) {
  const Dims chunk = source_->chunk_shape();
  for (std::size_t d = 0; d < selected.size(); ++d) {
    const Positions& positions = *selected[d];
    Dim dim;
    dim.indices.reserve(static_cast<std::size_t>(positions.size()));
    for (std::int64_t i = 0; i < positions.size(); ++i) dim.indices.push_back(positions[i]);
    if (!positions.is_range()) {
      std::sort(dim.indices.begin(), dim.indices.end());
      dim.indices.erase(std::unique(dim.indices.begin(), dim.indices.end()), dim.indices.end());
    }
    for (std::size_t i = 0; i < dim.indices.size(); ++i)
      if (i == 0 || dim.indices[i] / chunk[d] != dim.indices[i - 1] / chunk[d])
        dim.cuts.push_back(static_cast<std::int64_t>(i));
    dim.cuts.push_back(static_cast<std::int64_t>(dim.indices.size()));
    if (__builtin_mul_overflow(pieces_, dim.chunks(), &pieces_))
      throw Error(ErrorCode::not_supported, "more than 2^63 chunks", source_->name());
    dims_.push_back(std::move(dim));
    if (d != fastest) order_.push_back(d);
  }
  if (fastest != kNone) {
    order_.push_back(fastest);
    run_ = dims_[fastest].chunks();
  }
}

std::uint64_t Sweep::decoded_bytes() const {
  return static_cast<std::uint64_t>(pieces_) * source_->chunk_bytes();
}

Sweep::Piece Sweep::piece(std::int64_t number) const {
  Piece piece{{Dims(dims_.size()), Dims(dims_.size())}, std::vector<Axis>(dims_.size())};
  for (std::size_t o = order_.size(); o-- > 0;) {
    const std::size_t d = order_[o];
    const Dim& dim = dims_[d];
    const auto chunk = static_cast<std::size_t>(number % dim.chunks());
    number /= dim.chunks();
    const auto begin = dim.indices.begin() + dim.cuts[chunk],
               end = dim.indices.begin() + dim.cuts[chunk + 1];
    piece.box.start[d] = *begin;
    piece.box.shape[d] = *(end - 1) - *begin + 1;
    piece.axes[d].first = dim.cuts[chunk];
    for (auto it = begin; it != end; ++it) piece.axes[d].indices.push_back(*it - *begin);
  }
  return piece;
}

void Sweep::read(Engine& engine, const Use& use, const Progress& progress, std::int64_t first,
                 std::int64_t end) const {
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::set<std::int64_t> ahead;  // done, but not all before them
    std::int64_t done = 0;         // all pieces before this one
    std::int64_t running = 0;
    std::exception_ptr error;
  };
  if (first >= end) return;
  const auto state = std::make_shared<State>();
  state->done = first;
  // Enough at a time to keep a remote store busy, within a quarter of the memory.
  const std::uint64_t piece_bytes = source_->chunk_elements() * sizeof(double) + 1;
  const auto at_once = static_cast<std::int64_t>(
      std::clamp<std::uint64_t>(engine.budget().limit() / 4 / piece_bytes, 2, 256));

  auto start = [&](std::int64_t number) {
    const auto piece = std::make_shared<const Piece>(this->piece(number));
    const auto values =
        std::make_shared<Buffer>(static_cast<std::size_t>(piece->box.elements()) * sizeof(double));
    const auto done = [state, number, piece, values, &use](std::exception_ptr error) {
      if (!error) {
        try {
          use(number, *piece, values);
        } catch (...) {
          error = std::current_exception();
        }
      }
      const std::lock_guard lock(state->mutex);
      if (error && !state->error) state->error = error;
      state->ahead.insert(number);
      while (!state->ahead.empty() && *state->ahead.begin() == state->done) {
        state->ahead.erase(state->ahead.begin());
        ++state->done;
      }
      --state->running;
      state->changed.notify_one();
    };
    source_->read(engine, piece->box, values, done);
  };

  std::int64_t next = first, reported = first;
  std::unique_lock lock(state->mutex);
  for (;;) {
    const bool begins = !state->error && next < end && next - state->done < at_once;
    if (begins) {
      ++state->running;
      lock.unlock();
      try {
        start(next++);
        lock.lock();
      } catch (...) {  // no memory: running work must end before this returns
        lock.lock();
        --state->running;
        state->error = std::current_exception();
      }
      continue;
    }
    if (state->done != reported) {  // pieces may also end while progress() runs
      reported = state->done;
      lock.unlock();
      if (progress) progress(reported - first);
      lock.lock();
      continue;
    }
    if (state->running == 0) break;
    state->changed.wait(lock);
  }
  if (state->error) std::rethrow_exception(state->error);
}

}  // namespace batchfs
