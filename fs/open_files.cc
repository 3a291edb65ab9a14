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

/// How far ahead of a sequential reader of values.npy chunks are decoded.
constexpr std::uint64_t kReadAheadBytes = 16 << 20;

}  // namespace

void TextFile::read(std::uint64_t offset, std::uint64_t size, ReadDone done) {
  done(cut(std::as_bytes(std::span(text_)), offset, size), nullptr);
}

void SealedFile::read(std::uint64_t offset, std::uint64_t size, ReadDone done) {
  done(cut(file_->span(), offset, size), nullptr);
}

ValuesFile::ValuesFile(Engine& engine, std::shared_ptr<const Array> array, std::string header)
    : engine_(engine),
      array_(std::move(array)),
      header_(std::move(header)),
      size_(header_.size() +
            static_cast<std::uint64_t>(element_count(array_->shape())) * array_->type().itemsize) {}

void ValuesFile::read(std::uint64_t offset, std::uint64_t size, ReadDone done) {
  if (offset >= size_) return done({}, nullptr);
  size = std::min(size, size_ - offset);
  const bool sequential = next_.exchange(offset + size) == offset;
  const std::uint64_t itemsize = array_->type().itemsize;
  // Whole elements around what is asked for; the header comes before them.
  const std::uint64_t in_header =
      offset < header_.size() ? std::min(size, header_.size() - offset) : 0;
  const std::uint64_t begin = std::max<std::uint64_t>(offset, header_.size()) - header_.size();
  const std::uint64_t end = offset + size - std::min<std::uint64_t>(offset + size, header_.size());
  if (end <= begin) return done(cut(std::as_bytes(std::span(header_)), offset, size), nullptr);
  const std::uint64_t first = begin / itemsize, last = (end + itemsize - 1) / itemsize;
  const std::uint64_t skip = begin - first * itemsize;
  // The header's part and the elements in one buffer, so that the reply is one run of bytes; the
  // elements aligned. Where the header is part of it, the first element is whole (skip is 0).
  const std::uint64_t pad = (in_header + 63) / 64 * 64;
  auto buffer = std::make_shared<Buffer>(pad + (last - first) * itemsize);
  std::byte* elements = buffer->data() + pad;
  std::byte* reply = elements + skip - in_header;
  if (sequential) {
    // Also of the chunk that this read is in: the whole of it is going to be needed.
    const std::uint64_t count = std::min((last - first) + kReadAheadBytes / itemsize,
                                         (size_ - header_.size()) / itemsize - first);
    engine_.arrays().read_ahead(array_, static_cast<std::int64_t>(first),
                                static_cast<std::int64_t>(count));
  }
  engine_.arrays().read_elements(
      array_, static_cast<std::int64_t>(first), static_cast<std::int64_t>(last - first), elements,
      buffer,
      [this, buffer, reply, size, offset, in_header,
       done = std::move(done)](std::exception_ptr error) {
        if (error) return done({}, error);
        std::memcpy(reply, header_.data() + std::min<std::uint64_t>(offset, header_.size()),
                    in_header);
        engine_.counters().bytes_delivered += size;
        done({reply, size}, nullptr);
      });
}

}  // namespace batchfs
