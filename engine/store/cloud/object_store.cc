#include "engine/store/cloud/object_store.h"

#include <cstring>

#include "engine/store/cloud/object_reads.h"

namespace batchfs {

ObjectStore::ObjectStore(std::shared_ptr<ObjectService> service, std::shared_ptr<HttpClient> client,
                         RequestOptions options, ObjectVersions::Options versions)
    : service_(std::move(service)),
      reads_(std::make_unique<ObjectReads>(service_, std::move(client), std::move(options),
                                           std::move(versions))) {}
ObjectStore::~ObjectStore() = default;

std::string ObjectStore::url() const { return service_->url(); }
void ObjectStore::stop() { reads_->stop(); }
std::optional<Store::Speed> ObjectStore::speed() const { return reads_->speed(); }
bool ObjectStore::can_list() const { return service_->can_list(); }
std::vector<Store::Counter> ObjectStore::counters() const { return reads_->counters(); }

void ObjectStore::read_async(const std::string& key, ByteRange range, ReadDone done) {
  try {
    check_key(key);
  } catch (...) {
    return done(std::current_exception());
  }
  // HTTP has no empty ranges.
  const bool nothing = range.length == 0;
  reads_->start(key, nothing ? ByteRange{0, 1} : range, {},
                [nothing, done = std::move(done)](ObjectReads::PartOutcome outcome) {
                  if (auto* error = std::get_if<std::exception_ptr>(&outcome)) return done(*error);
                  auto& part = std::get<std::optional<ObjectReads::Part>>(outcome);
                  if (part && nothing) part->bytes.truncate(0);
                  done(part ? std::optional<Buffer>(std::move(part->bytes)) : std::nullopt);
                });
}

void ObjectStore::read_version_async(const std::string& key, ByteRange range,
                                     const std::string& known, VersionedDone done) {
  try {
    check_key(key);
  } catch (...) {
    return done(std::current_exception());
  }
  const bool nothing = range.length == 0;
  reads_->start(key, nothing ? ByteRange{0, 1} : range, known,
                [nothing, done = std::move(done)](ObjectReads::PartOutcome outcome) {
                  if (auto* error = std::get_if<std::exception_ptr>(&outcome)) return done(*error);
                  VersionedRead read;
                  if (auto& part = std::get<std::optional<ObjectReads::Part>>(outcome)) {
                    read.unchanged = part->unchanged;
                    read.version = std::move(part->version);
                    read.object_size = part->object_size;
                    read.modified = part->modified;
                    if (nothing) part->bytes.truncate(0);
                    if (!part->unchanged) read.bytes = std::move(part->bytes);
                  }
                  done(std::move(read));
                });
}

std::optional<Buffer> ObjectStore::read(const std::string& key, ByteRange range) {
  check_key(key);
  std::optional<ObjectReads::Part> part =
      reads_->read(key, range.length == 0 ? ByteRange{0, 1} : range);
  if (!part) return std::nullopt;
  if (range.length == 0) part->bytes.truncate(0);
  return std::move(part->bytes);
}

std::optional<Store::PartRead> ObjectStore::read_into(const std::string& key, std::uint64_t offset,
                                                      std::span<std::byte> out) {
  check_key(key);
  std::uint64_t bytes = 0;
  if (!out.empty()) {
    const std::optional<ObjectReads::Part> part = reads_->read(key, {offset, out.size()});
    if (!part) return std::nullopt;
    bytes = part->bytes.size();
    if (bytes > 0) std::memcpy(out.data(), part->bytes.data(), bytes);
    if (part->object_size) return PartRead{bytes, *part->object_size};
  }
  const std::optional<std::uint64_t> total = size(key);
  return total ? std::optional<PartRead>({bytes, *total}) : std::nullopt;
}

std::optional<std::uint64_t> ObjectStore::size(const std::string& key) {
  check_key(key);
  return reads_->size(key);
}

std::optional<std::uint64_t> ObjectStore::state(const std::string& key) {
  check_key(key);
  const std::optional<ObjectReads::Part> part = reads_->read(key, {0, 1}, true);
  return part ? state_of(part->version, part->object_size) : 0;
}

bool ObjectStore::list_states(const std::string& prefix, const Visit& visit) {
  std::optional<bool> agrees;
  const bool is_listed = reads_->list_versions(prefix, [&](const auto& object) {
    // Some tools make an object for a folder itself.
    if (!is_key(object.key) || object.key == prefix) return true;
    const auto state = state_of(object.version, object.size);
    if (!agrees) agrees = state && this->state(object.key) == state;
    if (!*agrees) return false;
    reads_->check_unchanged(object.key, object.version, object.size);
    return visit(object.key, state.value_or(0));
  });
  return is_listed && agrees.value_or(true);
}

std::vector<Store::Entry> ObjectStore::list(const std::string& prefix) {
  if (!prefix.empty()) check_key(prefix);
  return reads_->list(prefix);
}

}  // namespace batchfs
