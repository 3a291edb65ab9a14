#include <gtest/gtest.h>
#include <zlib.h>

#include "fs/formats/formats.h"
#include "tests/unit/engine/view/assembled.h"
#include "tests/unit/fs/mounted.h"

namespace batchfs {
namespace format_npz_test {

struct Member {
  std::string name;
  std::uint64_t header_at = 0, size = 0, data_at = 0;
  std::uint32_t crc = 0, local_crc = 0;
};

/// Bytes of a sparse file: the literals of a layout, zeros between them.
class Bytes {
 public:
  explicit Bytes(const BatchLayout::File& file) : file_(file) {}
  explicit Bytes(const std::string& all) : file_{all.size(), {{0, all}}} {}
  std::uint64_t number(std::uint64_t at, int size) const {
    std::uint64_t value = 0;
    for (int i = size - 1; i >= 0; --i)
      value = value << 8 | byte(at + static_cast<std::uint64_t>(i));
    return value;
  }
  std::string text(std::uint64_t at, std::uint64_t size) const {
    std::string text;
    for (std::uint64_t i = 0; i < size; ++i) text += static_cast<char>(byte(at + i));
    return text;
  }
  std::uint64_t size() const { return file_.size; }

 private:
  unsigned char byte(std::uint64_t at) const {
    EXPECT_LT(at, file_.size);
    for (const BatchLayout::Literal& literal : file_.literals)
      if (at >= literal.offset && at - literal.offset < literal.bytes.size())
        return static_cast<unsigned char>(literal.bytes[at - literal.offset]);
    return 0;
  }
  const BatchLayout::File file_;
};

/// An extra field's zip64 numbers (APPNOTE 4.5.3).
std::vector<std::uint64_t> zip64(const Bytes& file, std::uint64_t at, std::uint64_t length) {
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t end = at + length; at + 4 <= end;) {
    const std::uint64_t tag = file.number(at, 2), size = file.number(at + 2, 2);
    if (tag == 1)
      for (std::uint64_t i = 0; i + 8 <= size; i += 8)
        numbers.push_back(file.number(at + 4 + i, 8));
    at += 4 + size;
    EXPECT_LE(at, end);
  }
  return numbers;
}

/// By PKWARE's APPNOTE alone, from the end of the file.
std::vector<Member> members(const Bytes& file) {
  const std::uint64_t end = file.size() - 22;
  EXPECT_EQ(file.number(end, 4), 0x06054b50u);
  std::uint64_t count = file.number(end + 10, 2), size = file.number(end + 12, 4),
                at = file.number(end + 16, 4);
  if (at == 0xffffffff) {
    EXPECT_EQ(file.number(end - 20, 4), 0x07064b50u);
    const std::uint64_t wide = file.number(end - 20 + 8, 8);
    EXPECT_EQ(file.number(wide, 4), 0x06064b50u);
    count = file.number(wide + 32, 8);
    size = file.number(wide + 40, 8);
    at = file.number(wide + 48, 8);
    EXPECT_EQ(at + size, wide);
  } else {
    EXPECT_EQ(at + size, end);
  }
  std::vector<Member> all;
  for (std::uint64_t i = 0; i < count; ++i) {
    EXPECT_EQ(file.number(at, 4), 0x02014b50u);
    EXPECT_EQ(file.number(at + 10, 2), 0u) << "stored, not compressed";
    const std::uint64_t name_length = file.number(at + 28, 2), extra = file.number(at + 30, 2);
    Member member;
    member.name = file.text(at + 46, name_length);
    member.crc = static_cast<std::uint32_t>(file.number(at + 16, 4));
    member.size = file.number(at + 24, 4);
    EXPECT_EQ(file.number(at + 20, 4), member.size);
    member.header_at = file.number(at + 42, 4);
    const std::vector<std::uint64_t> wide = zip64(file, at + 46 + name_length, extra);
    if (member.size == 0xffffffff) member.size = wide.at(1);
    if (member.header_at == 0xffffffff) member.header_at = wide.back();
    at += 46 + name_length + extra + file.number(at + 32, 2);
    const std::uint64_t local = member.header_at;
    EXPECT_EQ(file.number(local, 4), 0x04034b50u);
    EXPECT_EQ(file.text(local + 30, file.number(local + 26, 2)), member.name);
    member.local_crc = static_cast<std::uint32_t>(file.number(local + 14, 4));
    member.data_at = local + 30 + file.number(local + 26, 2) + file.number(local + 28, 2);
    if (file.number(local + 22, 4) == 0xffffffff) {
      EXPECT_EQ(zip64(file, local + 30 + name_length, file.number(local + 28, 2)).at(0),
                member.size);
    } else {
      EXPECT_EQ(file.number(local + 22, 4), member.size);
    }
    all.push_back(member);
  }
  return all;
}

TEST(NpzFormat, IsAZipOfNpyMembersWithRightChecksums) {
  MemoryData data;
  data.add("a", "<f4", {"t", "x"}, {5, 3}, counting<float>(15))
      .add("b", "<i2", {"t"}, {5}, counting<std::int16_t>(5));
  Mounted mounted(data, {R"({"window": {"t": 1}, "batch": 3, "formats": ["npz"]})"});
  for (const int batch : {0, 1}) {
    const int rows = batch == 0 ? 3 : 2, first = 3 * batch;
    const std::string bytes =
        mounted.read("views/v/epoch-0000/batch-00000" + std::to_string(batch) + ".npz");
    const std::vector<Member> all = members(Bytes(bytes));
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].name, "a.npy");
    EXPECT_EQ(all[1].name, "b.npy");
    for (const Member& member : all) {
      const std::string npy = bytes.substr(member.data_at, member.size);
      const auto crc = static_cast<std::uint32_t>(
          crc32(0, reinterpret_cast<const Bytef*>(npy.data()), static_cast<uInt>(npy.size())));
      EXPECT_EQ(member.crc, crc);
      EXPECT_EQ(member.local_crc, crc);
      EXPECT_EQ((member.data_at + npy.size() - parse_npy(npy).data.size()) % 64, 0u)
          << "data is not aligned";
    }
    const ParsedNpy b = parse_npy(bytes.substr(all[1].data_at, all[1].size));
    EXPECT_EQ(b.header, "{'descr': '<i2', 'fortran_order': False, 'shape': (" +
                            std::to_string(rows) + ", 1), }");
    EXPECT_EQ(numbers<std::int16_t>(b.data).front(), first);
    EXPECT_EQ(numbers<float>(parse_npy(bytes.substr(all[0].data_at, all[0].size)).data).front(),
              static_cast<float>(3 * first));
  }
}

TEST(NpzFormat, BeyondFourGigabytesUsesZip64) {
  // Layouts alone: 6 GB tensors, one that begins beyond 4 GB, and one below.
  MemoryData data;
  data.declare("a", "|i1", {"t", "x"}, {4, 1'500'000'000}, {1, 1'500'000'000})
      .declare("b", "|i1", {"t"}, {4}, {4})
      .declare("c", "|i1", {"t", "x"}, {4, 1'500'000'000}, {1, 1'500'000'000});
  const auto view =
      parse_view(data.dataset(), R"({"window": {"t": 1}, "batch": 4, "formats": ["npz"]})");
  const BatchLayout layout = npz_format().layout(*view, 0);
  const std::vector<Member> all = members(Bytes(layout.files[0]));
  ASSERT_EQ(all.size(), 3u);
  const std::uint64_t header = 128;
  EXPECT_EQ(all[0].size, 6'000'000'000u + header);
  EXPECT_EQ(all[1].size, 4u + header);
  EXPECT_GT(all[1].header_at, 6'000'000'000u);
  EXPECT_EQ(all[2].size, 6'000'000'000u + header);
  for (std::size_t t = 0; t < 3; ++t) EXPECT_EQ(layout.tensors[t].offset, all[t].data_at + header);
}

}  // namespace format_npz_test
}  // namespace batchfs
