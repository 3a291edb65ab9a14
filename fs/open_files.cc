#include "fs/open_files.h"

#include <algorithm>
#include <cstring>

namespace batchfs {

namespace {

std::span<const std::byte> cut(std::span<const std::byte> bytes, std::uint64_t offset,
                               std::uint64_t size) {
  if (offset >= bytes.size()) return {};
  return bytes.subspan(offset, std::min<std::uint64_t>(size, bytes.size() - offset));
}

/// How far ahead of a sequential reader of values.npy chunks are decoded: one for each processor,
/// but no more than the cache keeps of what a reader goes through once.
constexpr std::uint64_t kMinAhead = 16 << 20, kMaxAhead = 80 << 20;

/// The kernel sends a large read() as several requests, which come in any order.
constexpr std::uint64_t kAtATime = 4 << 20;

}  // namespace

void TextFile::read(std::uint64_t offset, std::uint64_t size, ReadDone done) {
  const Bytes bytes = cut(std::as_bytes(std::span(text_)), offset, size);
  done({&bytes, 1}, nullptr);
}

void HeldFile::read(std::uint64_t offset, std::uint64_t size, ReadDone done) {
  const Bytes header = cut(std::as_bytes(std::span(header_)), offset, size);
  const std::uint64_t begin = std::max<std::uint64_t>(offset, header_.size()) - header_.size();
  const Bytes runs[] = {header, cut(bytes_, begin, size - header.size())};
  done(runs, nullptr);
}

void CoordinateFile::read(std::uint64_t offset, std::uint64_t size, ReadDone done) {
  if (offset >= values_.bytes()) return done({}, nullptr);
  size = std::min(size, values_.bytes() - offset);
  const std::uint64_t itemsize = values_.type.itemsize;
  const std::uint64_t first = offset / itemsize, last = (offset + size + itemsize - 1) / itemsize;
  Buffer buffer((last - first) * itemsize);
  try {
    values_.read({static_cast<std::int64_t>(first), static_cast<std::int64_t>(last - first)},
                 buffer.data());
  } catch (...) {
    return done({}, std::current_exception());
  }
  const Bytes bytes{buffer.data() + (offset - first * itemsize), size};
  done({&bytes, 1}, nullptr);
}

void SealedFile::read(std::uint64_t offset, std::uint64_t size, ReadDone done) {
  const Bytes bytes = cut(file_->span(), offset, size);
  done({&bytes, 1}, nullptr);
}

ValuesFile::ValuesFile(Engine& engine, std::shared_ptr<const Array> array, std::string header)
    : engine_(engine),
      array_(std::move(array)),
      header_(std::move(header)),
      size_(header_.size() +
            static_cast<std::uint64_t>(element_count(array_->shape())) * array_->type().itemsize),
      ahead_bytes_(
          std::clamp(array_->chunk_bytes() * static_cast<std::uint64_t>(engine_.state().threads),
                     kMinAhead, kMaxAhead)) {}

/// A read of [offset, end): is it of a sequential reader?
bool ValuesFile::goes_on(std::uint64_t offset, std::uint64_t end) {
  const std::lock_guard lock(mutex_);
  const bool follows =
      next_ != UINT64_MAX && offset + kAtATime >= next_ && offset <= next_ + kAtATime;
  if (!follows) ahead_ = 0;
  next_ = follows ? std::max(next_, end) : end;
  return follows;
}

/// A sequential reader is at elements [first, last): has what follows decoded, and all of the
/// chunks it is in.
void ValuesFile::read_ahead(std::uint64_t first, std::uint64_t last) {
  const std::uint64_t itemsize = array_->type().itemsize;
  const std::uint64_t until =
      std::min(last + ahead_bytes_ / itemsize, (size_ - header_.size()) / itemsize);
  std::uint64_t begin = 0;
  {
    const std::lock_guard lock(mutex_);
    begin = std::max(first, ahead_);
    ahead_ = std::max(ahead_, until);
  }
  if (begin < until)
    engine_.arrays().read_ahead(array_, static_cast<std::int64_t>(begin),
                                static_cast<std::int64_t>(until - begin));
}

void ValuesFile::read(std::uint64_t offset, std::uint64_t size, ReadDone done) {
  if (offset >= size_) return done({}, nullptr);
  size = std::min(size, size_ - offset);
  const bool sequential = goes_on(offset, offset + size);
  const std::uint64_t itemsize = array_->type().itemsize;
  // Whole elements around the requested bytes; the header comes before them.
  const Bytes header = cut(std::as_bytes(std::span(header_)), offset, size);
  const std::uint64_t begin = std::max<std::uint64_t>(offset, header_.size()) - header_.size();
  const std::uint64_t count = size - header.size();  // bytes
  if (count == 0) return done({&header, 1}, nullptr);
  const std::uint64_t first = begin / itemsize, last = (begin + count + itemsize - 1) / itemsize;
  const std::uint64_t skip = begin - first * itemsize;
  ArrayReads& arrays = engine_.arrays();
  const std::vector<ArrayReads::CachedRun> runs = arrays.find_cached(
      array_, static_cast<std::int64_t>(first), static_cast<std::int64_t>(last - first));
  if (!runs.empty()) {
    std::vector<Bytes> reply{header};
    for (const ArrayReads::CachedRun& run : runs) reply.push_back(run.bytes);
    reply[1] = reply[1].subspan(skip);
    reply.back() = reply.back().first(reply.back().size() - (last * itemsize - begin - count));
    engine_.counters().bytes_delivered += size;
    done(reply, nullptr);
    // Behind the answer: its reader works on it meanwhile.
    if (sequential) read_ahead(first, last);
    return;
  }
  if (sequential) read_ahead(first, last);
  auto buffer = std::make_shared<Buffer>((last - first) * itemsize);
  arrays.read_elements(
      array_, static_cast<std::int64_t>(first), static_cast<std::int64_t>(last - first),
      buffer->data(), buffer,
      [this, buffer, header, skip, count, done = std::move(done)](std::exception_ptr error) {
        if (error) return done({}, error);
        const Bytes reply[] = {header, {buffer->data() + skip, count}};
        engine_.counters().bytes_delivered += header.size() + count;
        done(reply, nullptr);
      });
}

}  // namespace batchfs
