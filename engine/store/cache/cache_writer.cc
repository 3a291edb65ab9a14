#include "engine/store/cache/cache_writer.h"

#include <cstring>
#include <exception>
#include <new>

#include <fmt/format.h>

namespace batchfs {

CacheWriter::CacheWriter(CacheFiles& files, Options options)
    : files_(files), options_(std::move(options)) {}

CacheWriter::~CacheWriter() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void CacheWriter::write(const CacheFiles::Name& name, CacheFiles::Version version, Buffer bytes,
                        const ReadDone& done) {
  const std::uint64_t size = bytes.size();
  if (!reserve(size)) return done(std::move(bytes));
  Job job{name, std::move(version), {}, {}};
  if (options_.wait_for_disk) {
    job.bytes = std::move(bytes);
    job.done = done;
    return post(std::move(job));
  }
  try {
    job.bytes = Buffer(size);
    if (size > 0) std::memcpy(job.bytes.data(), bytes.data(), size);
    post(std::move(job));
  } catch (const std::bad_alloc&) {
    // The reader still gets its bytes.
    const std::lock_guard lock(mutex_);
    waiting_ -= size;
    ++counters_.dropped;
  }
  done(std::move(bytes));
}

/// Room for this many bytes, and the thread that writes them.
bool CacheWriter::reserve(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  bool can =
      !broken_ && !stopping_ && (options_.wait_for_disk || waiting_ + bytes <= options_.queue);
  if (can && !thread_.joinable()) {
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::exception&) {
      can = false;
    }
  }
  if (can)
    waiting_ += bytes;
  else
    ++counters_.dropped;
  return can;
}

void CacheWriter::post(Job job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  wake_.notify_one();
}

void CacheWriter::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    const bool keep = !broken_;
    lock.unlock();
    const std::uint64_t size = job.bytes.size();
    if (keep) put(job);
    if (job.done) job.done(std::move(job.bytes));
    lock.lock();
    waiting_ -= size;
    if (!keep) ++counters_.dropped;
  }
}

void CacheWriter::put(const Job& job) {
  bool kept = false;
  std::string why;
  try {
    kept = files_.put(job.name, job.version, job.bytes.span());
  } catch (const std::exception& error) {
    why = error.what();
  }
  {
    const std::lock_guard lock(mutex_);
    if (kept)
      counters_.bytes += job.bytes.size();
    else
      ++counters_.dropped;
    if (!why.empty()) broken_ = true;
  }
  if (!why.empty() && options_.warn)
    options_.warn(fmt::format("{}; nothing more is kept in it", why));
}

CacheWriter::Counters CacheWriter::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

}  // namespace batchfs
