#include "engine/zarr/document_reader.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/limits.h"
#include "engine/base/strings.h"
#include "engine/store/decompression.h"
#include "engine/store/wrong_bytes.h"

namespace batchfs {

DocumentReader::DocumentReader(Store& store, MetadataMemory& memory)
    : store_(store), memory_(memory), largest_(std::min(kMaxDocument, memory.left())) {}

void DocumentReader::ask_ahead(const std::string& key) { ask_range_ahead(key, {0, largest_ + 1}); }

void DocumentReader::ask_head_ahead(const std::string& key, std::uint64_t bytes) {
  ask_range_ahead(key, {0, bytes});
}

std::optional<ReadOutcome> DocumentReader::answer(const std::string& key) {
  const auto asked = asked_.extract(key);
  if (!asked) return std::nullopt;
  try {
    return asked.mapped().get();
  } catch (...) {
    return std::current_exception();
  }
}

void DocumentReader::ask_range_ahead(const std::string& key, ByteRange range) {
  const auto promise = std::make_shared<std::promise<std::optional<Buffer>>>();
  asked_[key] = promise->get_future();
  store_.read_async(key, range, [promise](ReadOutcome outcome) {
    if (auto* error = std::get_if<std::exception_ptr>(&outcome))
      promise->set_exception(*error);
    else
      promise->set_value(std::move(std::get<std::optional<Buffer>>(outcome)));
  });
}

std::optional<Json> DocumentReader::document(const std::string& key) {
  const auto asked = asked_.extract(key);
  const std::optional<Buffer> bytes =
      asked ? asked.mapped().get() : store_.read(key, {0, largest_ + 1});
  if (!bytes) return std::nullopt;
  if (bytes->size() > kMaxDocument)
    throw Error(ErrorCode::not_supported,
                fmt::format("metadata documents of more than {} are not supported",
                            format_size(kMaxDocument)),
                key);
  if (bytes->size() > largest_) throw memory_.exceeded().at(key);
  const Passing passing(memory_, bytes->size());
  // Some servers compress answers to clients that do not ask for it.
  std::optional<Buffer> plain;
  if (!store_.is_local() && compression_of(bytes->span()) != FileCompression::none) {
    try {
      plain = decompress_file(bytes->span(), largest_);
    } catch (Error& error) {
      throw with_wrong_bytes(error.at(key), bytes->span());
    }
  }
  const Passing unpacked(memory_, plain ? plain->size() : 0);
  const Buffer& document = plain ? *plain : *bytes;
  const std::string_view text(reinterpret_cast<const char*>(document.data()), document.size());
  digest_.add(key);
  digest_.add(text);
  try {
    return parse_metadata(text, key, memory_.left(), notes_);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::no_memory) throw memory_.exceeded().at(key);
    throw with_wrong_bytes(error, document.span());
  }
}

std::optional<Json> DocumentReader::probe(const std::string& key) {
  try {
    return document(key);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt && error.code() != ErrorCode::access_denied) throw;
    if (!refusal_) refusal_ = error;
    return std::nullopt;
  }
}

std::string DocumentReader::digest() const { return digest_.text(); }

}  // namespace batchfs
