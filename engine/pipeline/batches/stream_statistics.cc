#include "engine/pipeline/batches/stream_statistics.h"

#include <algorithm>
#include <cmath>

namespace batchfs {

namespace {

constexpr std::size_t kMaxStreams = 256;
constexpr double kMemory = 10;  // seconds

double seconds(std::uint64_t later, std::uint64_t earlier) {
  return later > earlier ? static_cast<double>(later - earlier) * 1e-9 : 0;
}

}  // namespace

void Rate::add(double amount, std::uint64_t now) {
  if (first_ == 0) first_ = last_ = now;
  sum_ = sum_ * std::exp(-seconds(now, last_) / kMemory) + amount;
  last_ = std::max(last_, now);
}

double Rate::per_second(std::uint64_t now) const {
  if (first_ == 0) return 0;
  // At the beginning less has come than will be remembered. A second at least, or one event would
  // be a high rate.
  const double age = std::max(1.0, seconds(now, first_));
  return sum_ * std::exp(-seconds(now, last_) / kMemory) /
         (kMemory * (1 - std::exp(-age / kMemory)));
}

void StreamStatistics::record_delivery(const BatchRequest& request, std::uint64_t bytes,
                                       std::uint64_t waited, bool failed, std::uint64_t now) {
  Key key{request.view->name(), std::string(request.format->name()), request.world, request.rank};
  const std::lock_guard lock(mutex_);
  waits_.add(waited);
  auto it = records_.find(key);
  if (it == records_.end()) {
    if (records_.size() >= kMaxStreams)
      records_.erase(std::min_element(
          records_.begin(), records_.end(),
          [](const auto& a, const auto& b) { return a.second.last < b.second.last; }));
    it = records_.emplace(std::move(key), Record{}).first;
  }
  Record& record = it->second;
  record.stream.epoch = request.epoch;
  record.stream.batch = request.batch;
  record.stream.epoch_batches = request.view->rank_batches(request.rank, request.world);
  if (failed) {
    ++record.stream.failures;
  } else {
    ++record.stream.batches;
    record.stream.bytes += bytes;
    record.batches.add(1, now);
    record.bytes.add(static_cast<double>(bytes), now);
  }
  record.stream.waits.add(waited);
  record.waited.add(static_cast<double>(waited) * 1e-9, now);
  record.last = std::max(record.last, now);
}

std::vector<StreamStatistics::Stream> StreamStatistics::list(std::uint64_t now) const {
  std::vector<Stream> streams;
  const std::lock_guard lock(mutex_);
  for (const auto& [key, record] : records_) {
    Stream& stream = streams.emplace_back(record.stream);
    std::tie(stream.view, stream.format, stream.world, stream.rank) = key;
    stream.batches_per_second = record.batches.per_second(now);
    stream.bytes_per_second = record.bytes.per_second(now);
    stream.wait_share = record.waited.per_second(now);
    stream.idle = now > record.last ? now - record.last : 0;
  }
  return streams;
}

LatencyHistogram StreamStatistics::waits() const {
  const std::lock_guard lock(mutex_);
  return waits_;
}

}  // namespace batchfs
