// An uncompressed zip of .npy members, like that of numpy.savez. Sizes are known beforehand; the
// checksums are filled in when the tensors are complete. Source: PKWARE APPNOTE 6.3, sections 4.3
// and 4.5.3.

#include <algorithm>
#include <cstring>

#include <libdeflate.h>

#include "fs/formats/formats.h"
#include "fs/formats/npy.h"

namespace batchfs {

namespace {

constexpr std::uint32_t kLocalHeader = 0x04034b50, kCentralHeader = 0x02014b50;
constexpr std::uint64_t kMax32 = 0xffffffff;

/// Little-endian fields, one after the other.
class Bytes {
 public:
  Bytes& u16(std::uint64_t v) { return number(v, 2); }
  Bytes& u32(std::uint64_t v) { return number(v, 4); }
  Bytes& u64(std::uint64_t v) { return number(v, 8); }
  Bytes& text(const std::string& s) {
    bytes_ += s;
    return *this;
  }
  std::string take() { return std::move(bytes_); }
  std::size_t size() const { return bytes_.size(); }

 private:
  Bytes& number(std::uint64_t v, int size) {
    for (int i = 0; i < size; ++i) bytes_ += static_cast<char>((v >> (8 * i)) & 0xff);
    return *this;
  }
  std::string bytes_;
};

struct Member {
  std::string name;
  std::uint64_t header_at, data_at, size, central_at;
  bool zip64() const { return size >= kMax32 || header_at >= kMax32; }
};

/// Version, flags, method, time, date (1980-01-01, the zip epoch), checksum (later), sizes, name
/// length.
void common_fields(Bytes& out, const Member& member) {
  const std::uint64_t size = member.zip64() ? kMax32 : member.size;
  out.u16(member.zip64() ? 45 : 20).u16(0x800).u16(0).u16(0).u16(0x21).u32(0).u32(size).u32(size);
  out.u16(member.name.size());
}

class NpzFormat final : public BatchFormat {
 public:
  std::string_view name() const override { return "npz"; }

  BatchLayout layout(const View& view, std::int64_t batch) const override {
    const std::vector<Dims> shapes = view.shapes(batch);
    BatchLayout layout;
    BatchLayout::File file;
    std::vector<Member> members;
    std::uint64_t at = 0;
    for (std::size_t t = 0; t < shapes.size(); ++t) {
      const TensorSpec& tensor = view.tensors()[t];
      const std::string npy = npy_header(tensor.type, shapes[t], 64);
      Member member{
          tensor.name + ".npy", at, 0,
          npy.size() + static_cast<std::uint64_t>(element_count(shapes[t])) * tensor.type.itemsize,
          0};
      Bytes header;
      header.u32(kLocalHeader);
      common_fields(header, member);
      // The extra field holds the zip64 sizes and pads the member to 64 bytes (an unassigned tag).
      Bytes extra;
      if (member.zip64()) extra.u16(1).u16(16).u64(member.size).u64(member.size);
      const std::uint64_t unpadded = at + header.size() + 2 + member.name.size() + extra.size() + 4;
      const std::uint64_t padding = (64 - unpadded % 64) % 64;
      extra.u16(0xd935).u16(padding).text(std::string(padding, '\0'));
      header.u16(extra.size()).text(member.name).text(extra.take()).text(npy);
      member.data_at = at + header.size() - npy.size();
      file.literals.push_back({at, header.take()});
      layout.tensors.push_back({0, member.data_at + npy.size()});
      at = member.data_at + member.size;
      members.push_back(std::move(member));
    }
    const std::uint64_t directory_at = at;
    Bytes directory;
    for (Member& member : members) {
      member.central_at = directory_at + directory.size();
      directory.u32(kCentralHeader).u16(45);
      common_fields(directory, member);
      directory.u16(member.zip64() ? 28 : 0).u16(0).u16(0).u16(0).u32(0);
      directory.u32(member.zip64() ? kMax32 : member.header_at).text(member.name);
      if (member.zip64())
        directory.u16(1).u16(24).u64(member.size).u64(member.size).u64(member.header_at);
    }
    const std::uint64_t directory_size = directory.size();
    const bool zip64 = directory_at >= kMax32 || members.size() >= 0xffff;
    if (zip64) {
      const std::uint64_t end_at = directory_at + directory_size;
      directory.u32(0x06064b50).u64(44).u16(45).u16(45).u32(0).u32(0);
      directory.u64(members.size()).u64(members.size()).u64(directory_size).u64(directory_at);
      directory.u32(0x07064b50).u32(0).u64(end_at).u32(1);
    }
    const std::uint64_t count = std::min<std::uint64_t>(members.size(), 0xffff);
    directory.u32(0x06054b50).u16(0).u16(0).u16(count).u16(count).u32(directory_size);
    directory.u32(zip64 ? kMax32 : directory_at).u16(0);
    file.size = directory_at + directory.size();
    file.literals.push_back({directory_at, directory.take()});
    layout.files.push_back(std::move(file));
    layout.finish = [members = std::move(members)](std::vector<MemoryFile>& files, std::int64_t) {
      std::byte* data = files.front().data();
      for (const Member& member : members) {
        const std::uint32_t crc = libdeflate_crc32(0, data + member.data_at, member.size);
        std::memcpy(data + member.header_at + 14, &crc, 4);
        std::memcpy(data + member.central_at + 16, &crc, 4);
      }
    };
    return layout;
  }
};

}  // namespace

const BatchFormat& npz_format() {
  static const NpzFormat format;
  return format;
}

}  // namespace batchfs
