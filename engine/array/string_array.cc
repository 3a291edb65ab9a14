#include "engine/array/string_array.h"

#include <algorithm>
#include <deque>
#include <future>

#include <fmt/format.h>

#include "engine/array/array_presence.h"
#include "engine/base/awaited.h"
#include "engine/base/error.h"
#include "engine/base/strings.h"
#include "engine/store/crypto.h"
#include "engine/store/object_versions.h"

namespace batchfs {

namespace {

constexpr std::int64_t kMaxElements = INT64_C(1) << 22;
constexpr std::uint64_t kMaxArray = UINT64_C(256) << 20;  // bytes of all strings
constexpr std::size_t kMaxPending = 64;

/// Decodes bytes of unknown decoded size, `most` at most: retries with a larger and larger buffer.
Buffer decode_bytes(const Codec& codec, std::span<const std::byte> in, std::uint64_t most) {
  for (std::uint64_t room = std::max<std::uint64_t>(4096, 4 * in.size());; room *= 8) {
    room = std::min(room, most);
    Buffer out(room);
    try {
      out.truncate(codec.decode(in, out.span()));
      return out;
    } catch (const Error& error) {
      out.discard();
      if (room < most) continue;
      if (most == StringArray::kMaxChunk) throw;
      throw Error(
          error.code(),
          fmt::format("{}; if it is not damaged, it decodes to more than {}: give more with "
                      "--memory",
                      error.why(), format_size(most)));
    }
  }
}

/// Memory that a string takes beside the string object.
std::uint64_t heap_of(const std::string& string) {
  constexpr std::uint64_t kInside = 15, kNode = 16;
  return string.size() > kInside ? string.size() + kNode : 0;
}

/// The object's bytes, `most` + 1 at most, from the store or past every cache, one of which may have
/// sent it short or damaged.
Buffer read_all(Store& store, const std::string& key, std::uint64_t most, bool past_caches) {
  ReadOutcome outcome = awaited<ReadOutcome>([&](ReadDone done) {
    if (past_caches)
      read_past_caches(store, key, {0, most + 1}, std::move(done));
    else
      store.read_async(key, {0, most + 1}, std::move(done));
  });
  if (const auto* error = std::get_if<std::exception_ptr>(&outcome)) std::rethrow_exception(*error);
  auto& bytes = std::get<std::optional<Buffer>>(outcome);
  if (!bytes) throw ObjectVersions::vanished(key);
  return std::move(*bytes);
}

}  // namespace

StringArray::StringArray(std::shared_ptr<Store> store,
                         std::shared_ptr<const ArrayMetadata> metadata, std::uint64_t memory)
    : store_(std::move(store)),
      metadata_(std::move(metadata)),
      grid_(metadata_->shape, metadata_->chunk_shape),
      memory_(memory) {
  const std::vector<CodecSpec>& specs = metadata_->codecs;
  const bool is_text = metadata_->type.kind == Kind::variable_string;
  const auto refuse = [is_text](const std::string& why) {
    return Error(ErrorCode::not_supported,
                 (is_text ? "strings of any length " : "bytes of any length ") + why);
  };
  if (!metadata_->unsupported.empty())
    throw Error(ErrorCode::not_supported, metadata_->unsupported);
  if (!metadata_->type.is_variable()) throw Error(ErrorCode::internal, "not an array of strings");
  if (specs.empty()) throw refuse("without a codec are not supported");
  form_ = make_string_form(specs.front(), metadata_->type.kind);
  ChunkLayout bytes{{1}, make_type(Kind::unsigned_int, 1), {std::byte{0}}, true};
  for (std::size_t i = specs.size(); i-- > 1;) {
    const CodecFactory factory = find_codec(specs[i].name);
    if (factory == nullptr) throw unknown_codec(specs[i].name);
    if (codec_stage(specs[i].name) != CodecStage::bytes)
      throw refuse(fmt::format("with the codec '{}' are not supported", specs[i].name));
    codecs_.push_back(factory(JsonRef(specs[i].configuration, specs[i].name), bytes));
  }
  if (element_count(grid_.chunk_shape()) > kMaxElements)
    throw refuse("in chunks of more than 2^22 are not supported");
}

std::string StringArray::fill() const {
  const Json& fill = metadata_->fill_value_json;
  if (!fill.is_string() || fill == "0") return {};  // writers write 0, too
  const std::string text = fill.get<std::string>();
  return metadata_->type.kind == Kind::variable_bytes ? from_base64(text) : text;
}

Error StringArray::too_large() const {
  return Error(ErrorCode::no_memory,
               fmt::format("the {} strings take more than {} of memory; give more with --memory",
                           element_count(metadata_->shape), format_size(memory_)),
               metadata_->path);
}

std::vector<std::string> StringArray::decode(const Buffer& stored) const {
  return decode(stored.span(), kMaxChunk);
}

std::vector<std::string> StringArray::decode(std::span<const std::byte> stored,
                                             std::uint64_t most) const {
  std::span<const std::byte> bytes = stored;
  Buffer decoded;
  for (const auto& codec : codecs_) {
    Buffer next = decode_bytes(*codec, bytes, most);
    decoded = std::move(next);
    bytes = decoded.span();
  }
  return form_->decode(bytes, element_count(grid_.chunk_shape()), most);
}

/// `begin`: the first bytes of the chunk, which are all unless it has more than were asked for.
Buffer StringArray::read_stored(const std::string& key, Buffer begin, std::uint64_t most) const {
  Buffer stored = std::move(begin);
  if (stored.size() <= most / kMaxPending) return stored;
  stored = read_all(*store_, key, most, false);
  if (stored.size() > kMaxChunk)
    throw Error(ErrorCode::not_supported, "chunks of strings of more than 256 MB are not supported",
                key);
  if (stored.size() > most) throw too_large();
  return stored;
}

std::vector<std::string> StringArray::decode_read(const std::string& key, const Buffer& stored,
                                                  std::uint64_t most) const {
  try {
    try {
      return decode(stored.span(), most);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::corrupt || store_->is_local()) throw;
      return decode(read_all(*store_, key, most, true).span(), most);
    }
  } catch (Error& error) {
    throw error.at(key);
  }
}

std::string StringArray::key_of(const Dims& chunk) const {
  const std::string name = metadata_->key_encoding.key(chunk);
  return metadata_->path.empty() ? name : metadata_->path + "/" + name;
}

std::vector<std::string> StringArray::read_chunk(const Dims& chunk, ArrayPresence& presence) const {
  const std::string key = key_of(chunk);
  const auto count = static_cast<std::uint64_t>(element_count(grid_.chunk_shape()));
  const auto too_large = [&] {
    return Error(ErrorCode::no_memory,
                 fmt::format("the {} strings of a chunk take more than {} of memory; give more "
                             "with --memory",
                             count, format_size(memory_)),
                 key);
  };
  if (count * sizeof(std::string) > memory_) throw too_large();
  // It is in memory as stored, decoded and as strings.
  const std::uint64_t most = memory_ / 4;
  const std::optional<Buffer> stored = store_->read(key, {0, most + 1});
  if (!stored) {
    presence.confirm();
    return std::vector<std::string>(static_cast<std::size_t>(count), fill());
  }
  if (stored->size() > most) throw too_large();
  return decode_read(key, *stored, most);
}

std::vector<std::string> StringArray::read() const {
  const Dims& shape = metadata_->shape;
  const std::int64_t elements = element_count(shape);
  if (elements > kMaxElements)
    throw Error(ErrorCode::not_supported, "arrays of more than 2^22 strings are not supported",
                metadata_->path);
  const auto chunk_elements = static_cast<std::uint64_t>(element_count(grid_.chunk_shape()));
  std::uint64_t text = 0, held = static_cast<std::uint64_t>(elements) * sizeof(std::string);
  if (elements > 0 && std::max(held, chunk_elements * sizeof(std::string)) > memory_)
    throw too_large();
  std::vector<std::string> all(static_cast<std::size_t>(elements));
  const std::string absent = fill();
  // A chunk is in memory as stored, decoded and as strings, beside those of the chunks before.
  const std::uint64_t most = std::min(kMaxChunk, memory_ / 4);
  const Dims strides = c_strides(shape, 1), chunk_strides = c_strides(grid_.chunk_shape(), 1);
  ArrayPresence presence(store_, metadata_);
  struct Pending {
    Dims chunk;
    std::string key;
    std::future<std::optional<Buffer>> stored;
  };
  // Where a read is a round trip, many are in flight at once: the beginnings of chunks, which
  // together are no more than one chunk may have.
  std::deque<Pending> pending;
  const auto start = [&](std::int64_t number) {
    const Dims chunk = grid_.chunk(number);
    const std::string key = key_of(chunk);
    const auto promise = std::make_shared<std::promise<std::optional<Buffer>>>();
    pending.push_back({chunk, key, promise->get_future()});
    store_->read_async(key, {0, most / kMaxPending + 1}, [promise](ReadOutcome outcome) {
      if (auto* error = std::get_if<std::exception_ptr>(&outcome))
        promise->set_exception(*error);
      else
        promise->set_value(std::move(std::get<std::optional<Buffer>>(outcome)));
    });
  };
  const auto finish = [&] {
    Pending next = std::move(pending.front());
    pending.pop_front();
    std::optional<Buffer> begin = next.stored.get();
    std::vector<std::string> strings;
    if (begin)
      strings = decode_read(next.key, read_stored(next.key, std::move(*begin), most), most);
    else
      presence.confirm();
    const Box box = grid_.box(next.chunk);
    std::int64_t first = 0;
    for (std::size_t d = 0; d < strides.size(); ++d) first += box.start[d] * strides[d];
    for_each_run(box.shape, 1, chunk_strides, 1, strides,
                 [&](std::int64_t count, std::int64_t from, std::int64_t from_step, std::int64_t to,
                     std::int64_t to_step) {
                   for (std::int64_t i = 0; i < count; ++i) {
                     std::string& string = all[static_cast<std::size_t>(first + to + i * to_step)];
                     if (begin)
                       string = std::move(strings[static_cast<std::size_t>(from + i * from_step)]);
                     held += heap_of(begin ? string : absent);
                     text += (begin ? string : absent).size();
                     if (held > memory_) throw too_large();
                     if (!begin) string = absent;
                   }
                 });
    if (text > kMaxArray)
      throw Error(ErrorCode::not_supported,
                  "arrays of more than 256 MB of strings are not supported", metadata_->path);
  };
  for (std::int64_t number = 0; number < grid_.chunk_count(); ++number) {
    if (pending.size() == kMaxPending) finish();
    start(number);
  }
  while (!pending.empty()) finish();
  return all;
}

}  // namespace batchfs
