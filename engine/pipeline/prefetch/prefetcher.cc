#include "engine/pipeline/prefetch/prefetcher.h"
#include "engine/view/spec.h"

#include <algorithm>

namespace batchfs {

namespace {
constexpr std::size_t kMaxStreams = 256;

/// Batches that are made ahead to begin with. The first batch of a block needs nearly all of its
/// chunks, so these are brought a block ahead: a prefetch that grew with each stall would come
/// there after many blocks.
std::int64_t first_prefetch(const BatchRequest& request) {
  const Order* order = request.view->order();
  constexpr std::int64_t kFirst = Prefetcher::kFirstPrefetch;
  if (order == nullptr || order->shuffle != Order::Shuffle::block) return kFirst;
  // A rank reads its lanes in turn, and each lane has a block of its own.
  const std::int64_t of_lane = std::min(mixed_samples(*request.view) / request.view->batch_size(),
                                        Prefetcher::kMaxPrefetch * request.world);
  const std::int64_t of_block = of_lane * order->lanes / request.world;
  return std::clamp(of_block + 1, kFirst, Prefetcher::kMaxPrefetch);
}

}  // namespace

Prefetcher::Key Prefetcher::key_of(const BatchRequest& request) {
  return {request.view.get(), request.format, request.rank, request.world};
}

std::int64_t Prefetcher::distance(const Stream& stream, const BatchRequest& request) {
  if (request.batch >= stream.per_epoch) return 0;  // of an epoch that ends before it
  return request.epoch * stream.per_epoch + request.batch - stream.position;
}

BatchRequest Prefetcher::ahead(const Stream& stream, const BatchRequest& request,
                               std::int64_t distance) {
  const std::int64_t sequence = stream.position + distance;
  BatchRequest next = request;
  next.epoch = sequence / stream.per_epoch;
  next.batch = sequence % stream.per_epoch;
  // Epochs beyond the view's are read on request only.
  if (next.epoch >= std::max(request.view->spec().epochs, request.epoch + 1)) next.batch = -1;
  return next;
}

bool Prefetcher::opened(const BatchRequest& request, bool stalled) {
  const std::int64_t all =
      std::max<std::int64_t>(1, request.view->rank_batches(request.rank, request.world));
  const std::lock_guard lock(mutex_);
  if (streams_.size() >= kMaxStreams && !streams_.contains(key_of(request)))
    streams_.erase(std::min_element(streams_.begin(), streams_.end(), [](auto& a, auto& b) {
      return a.second.last_used < b.second.last_used;
    }));
  Stream& stream = streams_[key_of(request)];
  // Else of another view, at its address.
  if (stream.view.expired()) stream = {.per_epoch = all, .view = request.view};
  stream.last_used = ++clock_;
  const bool first = stream.position < 0;
  if (!first) {
    const std::int64_t epoch = stream.position / stream.per_epoch;
    const std::int64_t batch = stream.position % stream.per_epoch;
    if (request.batch >= stream.per_epoch) {  // longer than the last epoch
      stream.per_epoch = all;
      stream.position = epoch * all + batch;
    } else if (request.batch == 0 && request.epoch == epoch + 1 && stream.prefetch > 0) {
      stream.per_epoch = batch + 1;
      stream.position = request.epoch * stream.per_epoch - 1;
    }
  }
  const std::int64_t at = request.epoch * stream.per_epoch + request.batch;
  // Several processes that share a stream open its batches slightly out of order.
  const std::int64_t slack = stream.prefetch + 8;
  const bool in_order = !first && at > stream.position - slack && at <= stream.position + slack;
  const bool next = !first && at == stream.position + 1;
  if (first || next) {
    if (stream.prefetch == 0)
      stream.prefetch = first_prefetch(request);
    else if (stalled)
      stream.prefetch *= 2;
    stream.position = at;
  } else if (in_order) {
    stream.position = std::max(stream.position, at);
  } else {
    stream.prefetch = 0;  // a jump: the next batch is unknown until two come in order
    stream.position = at;
  }
  stream.prefetch = std::min(stream.prefetch, kMaxPrefetch);
  return first;
}

std::vector<BatchRequest> Prefetcher::due(const BatchRequest& request, std::uint64_t batch_bytes,
                                          std::uint64_t room) {
  const std::lock_guard lock(mutex_);
  const auto it = streams_.find(key_of(request));
  if (it == streams_.end()) return {};
  Stream& stream = it->second;
  const auto fits = static_cast<std::int64_t>(room / std::max<std::uint64_t>(batch_bytes, 1));
  stream.prefetch = std::min(stream.prefetch, std::max<std::int64_t>(fits, 1));
  std::vector<BatchRequest> wanted;
  for (std::int64_t i = 1; i <= stream.prefetch; ++i) {
    wanted.push_back(ahead(stream, request, i));
    if (wanted.back().batch < 0) {
      wanted.pop_back();
      break;
    }
  }
  return wanted;
}

std::int64_t Prefetcher::streams_read() const {
  const std::lock_guard lock(mutex_);
  const auto read = std::count_if(streams_.begin(), streams_.end(), [this](const auto& stream) {
    return stream.second.prefetch > 0 && stream.second.last_used + kForgotten >= clock_;
  });
  return std::max<std::int64_t>(1, read);
}

void Prefetcher::on_memory_pressure(const BatchRequest& request) {
  const std::lock_guard lock(mutex_);
  const auto it = streams_.find(key_of(request));
  if (it != streams_.end())
    it->second.prefetch = std::max<std::int64_t>(1, it->second.prefetch / 2);
}

void Prefetcher::on_no_spare_memory(const BatchRequest& request) {
  const std::lock_guard lock(mutex_);
  const auto it = streams_.find(key_of(request));
  if (it == streams_.end()) return;
  const std::int64_t before = distance(it->second, request) - 1;
  if (before >= 0)
    it->second.prefetch = std::min(it->second.prefetch, std::max(before, kFirstPrefetch));
}

std::vector<Prefetcher::Ahead> Prefetcher::beyond(const BatchRequest& request,
                                                  std::int64_t count) const {
  const std::lock_guard lock(mutex_);
  std::vector<Ahead> result;
  const auto it = streams_.find(key_of(request));
  if (it == streams_.end() || it->second.prefetch == 0) return result;
  for (std::int64_t i = 1; i <= count; ++i) {
    const std::int64_t distance = it->second.prefetch + i;
    result.push_back({distance, ahead(it->second, request, distance)});
    if (result.back().request.batch < 0) {
      result.pop_back();
      break;
    }
  }
  return result;
}

bool Prefetcher::leaves_out(const BatchRequest& request) const {
  const std::lock_guard lock(mutex_);
  const auto it = streams_.find(key_of(request));
  return it != streams_.end() && request.batch >= it->second.per_epoch;
}

bool Prefetcher::is_ahead(const BatchRequest& request) const {
  const std::lock_guard lock(mutex_);
  const auto it = streams_.find(key_of(request));
  return it != streams_.end() && distance(it->second, request) > 0;
}

bool Prefetcher::wanted(const BatchRequest& request) const {
  const std::lock_guard lock(mutex_);
  const auto it = streams_.find(key_of(request));
  if (it == streams_.end()) return false;
  const std::int64_t from_reader = distance(it->second, request);
  return from_reader > 0 && from_reader <= it->second.prefetch;
}

void Prefetcher::forget(const std::function<bool(const View&)>& chosen) {
  const std::lock_guard lock(mutex_);
  std::erase_if(streams_, [&chosen](const auto& stream) {
    const auto view = stream.second.view.lock();
    return view == nullptr || chosen(*view);
  });
}

std::vector<Prefetcher::StreamState> Prefetcher::streams() const {
  const std::lock_guard lock(mutex_);
  std::vector<StreamState> states;
  for (const auto& [key, stream] : streams_) {
    const auto view = stream.view.lock();
    if (view == nullptr) continue;
    const auto& [address, format, rank, world] = key;
    states.push_back({view->name(), std::string(format->name()), rank, world,
                      stream.position / stream.per_epoch, stream.position % stream.per_epoch,
                      stream.prefetch});
  }
  return states;
}

}  // namespace batchfs
