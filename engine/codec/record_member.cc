// kerchunk's `record_member`: one field of records. A dataset shows the fields of structured arrays
// by it, too.

#include <cstring>

#include <fmt/format.h>

#include "engine/codec/codecs.h"

namespace batchfs {

namespace {

class RecordMemberCodec final : public Codec {
 public:
  RecordMemberCodec(std::size_t record, std::size_t offset, std::size_t size)
      : record_(record), offset_(offset), size_(size) {}
  std::string_view name() const override { return "record_member"; }
  std::optional<std::uint64_t> encoded_size(std::uint64_t decoded) const override {
    return decoded / size_ * record_;
  }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    const std::size_t count = in.size() / record_;
    if (in.size() % record_ != 0 || count > out.size() / size_)
      throw Error(ErrorCode::corrupt,
                  fmt::format("{} bytes are not the {} records of {} bytes that were expected",
                              in.size(), out.size() / size_, record_));
    for (std::size_t i = 0; i < count; ++i)
      std::memcpy(out.data() + i * size_, in.data() + i * record_ + offset_, size_);
    return count * size_;
  }

 private:
  const std::size_t record_, offset_, size_;
};

}  // namespace

std::unique_ptr<Codec> make_record_member(const JsonRef& configuration, ChunkLayout& layout) {
  const JsonRef member = configuration.at("member"), dtype = configuration.at("dtype");
  const DataType record = parse_v2_type(dtype, "");
  const std::string name = member.string();
  std::vector<std::string> names;
  for (const Field& field : record.fields) {
    names.push_back(field.name);
    if (field.name != name) continue;
    const std::size_t size = field.bytes();
    if (size == 0) throw member.error("this field has no bytes");
    layout.type = record;
    return std::make_unique<RecordMemberCodec>(record.itemsize, field.offset, size);
  }
  throw member.error(
      fmt::format("the records have no field '{}'{}", name, nearest_or_all(name, names)));
}

}  // namespace batchfs
