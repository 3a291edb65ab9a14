// `bytes`: array elements as bytes, in one of two orders. Source: v3 core, codec "bytes"; `endian`
// is its name before the final specification.

#include <algorithm>
#include <cstring>

#include "engine/codec/codecs.h"

namespace batchfs {

namespace {

class BytesCodec final : public Codec {
 public:
  BytesCodec(DataType type, bool swap) : type_(std::move(type)), swap_(swap) {}
  std::string_view name() const override { return "bytes"; }
  std::optional<std::uint64_t> encoded_size(std::uint64_t decoded) const override {
    return decoded;
  }
  bool in_place() const override { return true; }
  bool is_identity() const override { return !swap_; }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    if (in.size() > out.size() || in.size() % std::max<std::size_t>(type_.itemsize, 1) != 0)
      throw Error(ErrorCode::corrupt, "the chunk has " + std::to_string(in.size()) + " bytes, " +
                                          std::to_string(out.size()) + " were expected");
    if (in.data() != out.data() && !in.empty()) std::memcpy(out.data(), in.data(), in.size());
    if (swap_) swap_bytes(type_, out.data(), in.size() / type_.itemsize);
    return in.size();
  }

 private:
  const DataType type_;
  const bool swap_;
};

/// Numbers in a stored form of their own.
class SmallNumbersCodec final : public Codec {
 public:
  SmallNumbersCodec(const SmallNumber& stored, bool big_endian)
      : stored_(stored), big_endian_(big_endian) {}
  std::string_view name() const override { return stored_.name; }
  std::optional<std::uint64_t> encoded_size(std::uint64_t decoded) const override {
    return decoded / stored_.memory_bytes * stored_.stored_bytes();
  }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    const std::size_t count = in.size() / stored_.stored_bytes();
    if (in.size() % stored_.stored_bytes() != 0 || count > out.size() / stored_.memory_bytes)
      throw Error(ErrorCode::corrupt, "the chunk has " + std::to_string(in.size()) + " bytes, " +
                                          std::to_string(*encoded_size(out.size())) +
                                          " were expected");
    stored_.decode(in, big_endian_, out);
    return count * stored_.memory_bytes;
  }

 private:
  const SmallNumber& stored_;
  const bool big_endian_;
};

}  // namespace

std::unique_ptr<Codec> make_bytes(const JsonRef& configuration, ChunkLayout& layout) {
  configuration.allow_only({"endian"});
  bool big = false;
  if (const auto endian = configuration.find("endian")) {
    const std::string text = endian->string();
    if (text != "big" && text != "little") throw endian->error("expected \"big\" or \"little\"");
    big = text == "big";
  }
  if (layout.type.is_variable())
    throw Error(ErrorCode::not_supported,
                "variable-length values under the codec 'bytes' are not supported");
  if (layout.stored != nullptr) {
    layout.serialized = true;
    layout.type = make_type(Kind::raw, layout.stored->stored_bytes());
    return std::make_unique<SmallNumbersCodec>(*layout.stored, big);
  }
  // In v2 the fields of structured types have orders of their own.
  if (layout.type.kind == Kind::structured) {
    if (configuration.find("endian")) set_byte_order(layout.type, big);
  } else {
    layout.type.big_endian = big && layout.type.itemsize > 1;
  }
  layout.serialized = true;
  const bool swap = layout.type.kind == Kind::structured || layout.type.big_endian;
  return std::make_unique<BytesCodec>(layout.type, swap);
}

}  // namespace batchfs
