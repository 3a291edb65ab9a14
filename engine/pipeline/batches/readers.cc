#include "engine/pipeline/batches/readers.h"

#include <algorithm>
#include <cmath>

namespace batchfs {

namespace {

constexpr std::size_t kMaxReaders = 256;
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
  // At the beginning less has come than will be remembered. A second at least, or one event would be a high rate.
  const double age = std::max(1.0, seconds(now, first_));
  return sum_ * std::exp(-seconds(now, last_) / kMemory) / (kMemory * (1 - std::exp(-age / kMemory)));
}

void Readers::got(const BatchRequest& request, std::uint64_t bytes, std::uint64_t waited, bool failed,
                  std::uint64_t now) {
  Key key{request.view->name(), std::string(request.format->name()), request.world, request.rank};
  const std::lock_guard lock(mutex_);
  waits_.add(waited);
  auto it = entries_.find(key);
  if (it == entries_.end()) {
    if (entries_.size() >= kMaxReaders)
      entries_.erase(std::min_element(entries_.begin(), entries_.end(),
                                      [](const auto& a, const auto& b) { return a.second.last < b.second.last; }));
    it = entries_.emplace(std::move(key), Entry{}).first;
  }
  Entry& entry = it->second;
  entry.reader.epoch = request.epoch;
  entry.reader.batch = request.batch;
  entry.reader.epoch_batches = request.view->rank_batches(request.rank, request.world);
  if (failed) {
    ++entry.reader.failures;
  } else {
    ++entry.reader.batches;
    entry.reader.bytes += bytes;
    entry.batches.add(1, now);
    entry.bytes.add(static_cast<double>(bytes), now);
  }
  entry.reader.waits.add(waited);
  entry.waited.add(static_cast<double>(waited) * 1e-9, now);
  entry.last = std::max(entry.last, now);
}

std::vector<Readers::Reader> Readers::list(std::uint64_t now) const {
  std::vector<Reader> readers;
  const std::lock_guard lock(mutex_);
  for (const auto& [key, entry] : entries_) {
    Reader& reader = readers.emplace_back(entry.reader);
    std::tie(reader.view, reader.format, reader.world, reader.rank) = key;
    reader.batches_per_second = entry.batches.per_second(now);
    reader.bytes_per_second = entry.bytes.per_second(now);
    reader.wait_share = entry.waited.per_second(now);
    reader.idle = now > entry.last ? now - entry.last : 0;
  }
  return readers;
}

Waits Readers::waits() const {
  const std::lock_guard lock(mutex_);
  return waits_;
}

}  // namespace batchfs
