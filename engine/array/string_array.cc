#include "engine/array/string_array.h"

#include <algorithm>
#include <deque>
#include <future>

#include <fmt/format.h>

#include "engine/array/array_presence.h"
#include "engine/base/awaited.h"
#include "engine/base/error.h"
#include "engine/store/cloud/signing/crypto.h"
#include "engine/store/object_versions.h"

namespace batchfs {

namespace {

constexpr std::int64_t kMaxElements = INT64_C(1) << 22;
constexpr std::uint64_t kMaxArray = UINT64_C(256) << 20;  // bytes of all strings
constexpr std::size_t kMaxPending = 64;

/// Decodes bytes of unknown decoded size: retries with a larger and larger buffer.
Buffer decode_bytes(const Codec& codec, std::span<const std::byte> in) {
  for (std::uint64_t room = std::max<std::uint64_t>(4096, 4 * in.size());; room *= 8) {
    room = std::min(room, StringArray::kMaxChunk);
    Buffer out(room);
    try {
      out.truncate(codec.decode(in, out.span()));
      return out;
    } catch (const Error&) {
      if (room == StringArray::kMaxChunk) throw;
    }
  }
}

}  // namespace

/// Reads the object past every cache, one of which may have sent it short or damaged.
Buffer read_anew(Store& store, const std::string& key) {
  ReadOutcome outcome = awaited<ReadOutcome>([&](ReadDone done) {
    read_past_caches(store, key, {0, StringArray::kMaxChunk + 1}, std::move(done));
  });
  if (const auto* error = std::get_if<std::exception_ptr>(&outcome)) std::rethrow_exception(*error);
  auto& bytes = std::get<std::optional<Buffer>>(outcome);
  if (!bytes) throw ObjectVersions::vanished(key);
  return std::move(*bytes);
}

StringArray::StringArray(std::shared_ptr<Store> store,
                         std::shared_ptr<const ArrayMetadata> metadata)
    : store_(std::move(store)),
      metadata_(std::move(metadata)),
      grid_(metadata_->shape, metadata_->chunk_shape) {
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

std::vector<std::string> StringArray::decode(const Buffer& stored) const {
  std::span<const std::byte> bytes = stored.span();
  Buffer decoded;
  for (const auto& codec : codecs_) {
    Buffer next = decode_bytes(*codec, bytes);
    decoded = std::move(next);
    bytes = decoded.span();
  }
  return form_->decode(bytes, element_count(grid_.chunk_shape()));
}

std::vector<std::string> StringArray::read() const {
  const Dims& shape = metadata_->shape;
  const std::int64_t elements = element_count(shape);
  if (elements > kMaxElements)
    throw Error(ErrorCode::not_supported, "arrays of more than 2^22 strings are not supported",
                metadata_->path);
  std::vector<std::string> all(static_cast<std::size_t>(elements), fill());
  const Dims strides = c_strides(shape, 1), chunk_strides = c_strides(grid_.chunk_shape(), 1);
  std::uint64_t total = 0;
  ArrayPresence presence(store_, metadata_);
  struct Pending {
    Dims chunk;
    std::string key;
    std::future<std::optional<Buffer>> stored;
  };
  std::deque<Pending> pending;  // where a read is a round trip, many are in flight at once
  const auto start = [&](std::int64_t number) {
    const Dims chunk = grid_.chunk(number);
    const std::string name = metadata_->key_encoding.key(chunk);
    const std::string key = metadata_->path.empty() ? name : metadata_->path + "/" + name;
    const auto promise = std::make_shared<std::promise<std::optional<Buffer>>>();
    pending.push_back({chunk, key, promise->get_future()});
    store_->read_async(key, {0, StringArray::kMaxChunk + 1}, [promise](ReadOutcome outcome) {
      if (auto* error = std::get_if<std::exception_ptr>(&outcome))
        promise->set_exception(*error);
      else
        promise->set_value(std::move(std::get<std::optional<Buffer>>(outcome)));
    });
  };
  const auto finish = [&] {
    Pending next = std::move(pending.front());
    pending.pop_front();
    const std::optional<Buffer> stored = next.stored.get();
    if (!stored) return presence.confirm();
    if (stored->size() > StringArray::kMaxChunk)
      throw Error(ErrorCode::not_supported,
                  "chunks of strings of more than 256 MB are not supported", next.key);
    std::vector<std::string> strings;
    try {
      try {
        strings = decode(*stored);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::corrupt || store_->is_local()) throw;
        strings = decode(read_anew(*store_, next.key));
      }
    } catch (Error& error) {
      throw error.at(next.key);
    }
    const Box box = grid_.box(next.chunk);
    std::int64_t first = 0;
    for (std::size_t d = 0; d < strides.size(); ++d) first += box.start[d] * strides[d];
    for_each_run(box.shape, 1, chunk_strides, 1, strides,
                 [&](std::int64_t count, std::int64_t from, std::int64_t from_step, std::int64_t to,
                     std::int64_t to_step) {
                   for (std::int64_t i = 0; i < count; ++i) {
                     std::string& string = all[static_cast<std::size_t>(first + to + i * to_step)];
                     string = std::move(strings[static_cast<std::size_t>(from + i * from_step)]);
                     total += string.size();
                   }
                 });
    if (total > kMaxArray)
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
