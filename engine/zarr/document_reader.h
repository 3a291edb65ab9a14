#pragma once
// The metadata documents of a store.

#include <cstdint>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/json.h"
#include "engine/store/fingerprint.h"
#include "engine/store/store.h"
#include "engine/zarr/metadata_json.h"
#include "engine/zarr/metadata_memory.h"

namespace batchfs {

/// Reads and parses documents, remembering a digest of all. Not thread-safe.
class DocumentReader {
 public:
  /// Both outlive it.
  DocumentReader(Store& store, MetadataMemory& memory);

  /// Starts to read a document that is likely to be wanted: several then take one round trip.
  void ask_ahead(const std::string& key);
  /// The same for the first bytes of an object that is not a document, for answer().
  void ask_head_ahead(const std::string& key, std::uint64_t bytes);
  /// The raw outcome of a read ahead; nullopt: none was started. Waits.
  std::optional<ReadOutcome> answer(const std::string& key);

  /// nullopt where the store has none. Throws corrupt for invalid JSON, not_supported for a
  /// document that is too long, no_memory where it does not fit in the memory that is left.
  std::optional<Json> document(const std::string& key);

  /// The same for a document that may be missing. Some servers' substitutes for "missing" (a web
  /// page, access denied) are errors only if there is no other document, either: see refusal().
  std::optional<Json> probe(const std::string& key);
  /// The first such answer.
  const std::optional<Error>& refusal() const { return refusal_; }

  /// The differences between the documents so far and their stored form.
  const DocumentNotes& notes() const { return notes_; }

  /// A fingerprint of the keys and the bytes of all documents so far.
  std::string digest() const;

 private:
  void ask_range_ahead(const std::string& key, ByteRange range);

  Store& store_;
  MetadataMemory& memory_;
  const std::uint64_t largest_;  // bytes of one document
  std::map<std::string, std::future<std::optional<Buffer>>> asked_;
  std::optional<Error> refusal_;
  DocumentNotes notes_;
  Fingerprint digest_;
};

}  // namespace batchfs
