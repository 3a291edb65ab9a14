#include "engine/store/zip/zip_directory.h"

#include <concepts>
#include <random>

#include <gtest/gtest.h>

#include "tests/unit/engine/store/memory_store.h"

namespace batchfs {
namespace zip_directory_test {

using Bytes = std::vector<std::byte>;

template <std::unsigned_integral Number>
void put(Bytes& bytes, Number number) {
  for (std::size_t i = 0; i < sizeof number; ++i)
    bytes.push_back(static_cast<std::byte>(number >> (8 * i)));
}
void put(Bytes& bytes, std::string_view text) {
  for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
}
void put(Bytes& bytes, const Bytes& more) { bytes.insert(bytes.end(), more.begin(), more.end()); }

/// An entry of the directory, as APPNOTE 4.3.12 lays it out.
struct Entry {
  std::string name;
  std::uint32_t offset = 0, size = 0, compressed_size = 0, crc = 0;
  std::uint16_t flags = 0, method = 0, disk = 0;
  Bytes extra = {};
  std::string comment = {};
};

Bytes directory_of(const std::vector<Entry>& entries) {
  Bytes bytes;
  for (const Entry& entry : entries) {
    put(bytes, std::uint32_t{0x02014b50});
    put(bytes, std::uint32_t{0});  // versions
    put(bytes, entry.flags);
    put(bytes, entry.method);
    put(bytes, std::uint32_t{0});  // time
    put(bytes, entry.crc);
    put(bytes, entry.compressed_size);
    put(bytes, entry.size);
    put(bytes, static_cast<std::uint16_t>(entry.name.size()));
    put(bytes, static_cast<std::uint16_t>(entry.extra.size()));
    put(bytes, static_cast<std::uint16_t>(entry.comment.size()));
    put(bytes, entry.disk);
    put(bytes, std::uint16_t{0});  // attributes
    put(bytes, std::uint32_t{0});
    put(bytes, entry.offset);
    put(bytes, entry.name);
    put(bytes, entry.extra);
    put(bytes, entry.comment);
  }
  return bytes;
}

/// The end record (4.3.16).
Bytes end_record(std::uint32_t size, std::uint32_t offset, std::string_view comment = {},
                 std::uint16_t disk = 0) {
  Bytes bytes;
  put(bytes, std::uint32_t{0x06054b50});
  put(bytes, disk);
  put(bytes, std::uint16_t{0});
  put(bytes, std::uint32_t{0});  // number of entries: never read
  put(bytes, size);
  put(bytes, offset);
  put(bytes, static_cast<std::uint16_t>(comment.size()));
  put(bytes, comment);
  return bytes;
}

/// The Zip64 end record and its locator (4.3.14, 4.3.15).
Bytes end64(std::uint64_t size, std::uint64_t offset, std::uint64_t record,
            std::uint32_t disks = 1) {
  Bytes bytes;
  put(bytes, std::uint32_t{0x06064b50});
  put(bytes, std::uint64_t{44});
  put(bytes, std::uint32_t{0});
  put(bytes, std::uint64_t{0});  // disks
  put(bytes, std::uint64_t{0});
  put(bytes, std::uint64_t{0});  // entries
  put(bytes, size);
  put(bytes, offset);
  put(bytes, std::uint32_t{0x07064b50});
  put(bytes, std::uint32_t{0});
  put(bytes, record);
  put(bytes, disks);
  return bytes;
}

/// Members of `members` bytes, which are never read here, and the directory.
Bytes archive(std::size_t members, const std::vector<Entry>& entries,
              std::string_view comment = {}) {
  const Bytes directory = directory_of(entries);
  Bytes bytes(members);
  put(bytes, directory);
  put(bytes, end_record(static_cast<std::uint32_t>(directory.size()),
                        static_cast<std::uint32_t>(members), comment));
  return bytes;
}

ZipDirectory read(const Bytes& bytes) {
  MemoryStore store;
  store.set("x.zip", bytes);
  return ZipDirectory::read(store, "x.zip");
}

template <class Body>
Error failure(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return Error(ErrorCode::internal, "no error");
}

ErrorCode refusal(const Bytes& bytes) {
  return failure([&] { read(bytes); }).code();
}

/// A field of the extra data: its number, and 64-bit values.
Bytes field(std::uint16_t number, const std::vector<std::uint64_t>& values) {
  Bytes bytes;
  put(bytes, number);
  put(bytes, static_cast<std::uint16_t>(values.size() * 8));
  for (const std::uint64_t value : values) put(bytes, value);
  return bytes;
}

std::string names(const std::vector<Store::Entry>& entries) {
  std::string text;
  for (const Store::Entry& entry : entries) text += entry.name + (entry.is_prefix ? "/ " : " ");
  return text;
}

TEST(ZipDirectory, MembersAreAsItsEntriesSay) {
  const ZipDirectory directory = read(archive(
      1000, {{"t/0", 100, 300, 200, 0xfeedface, 8, 9, 0, field(0xcafe, {1, 2}), "a comment"},
             {"a", 0, 1, 1}}));
  ASSERT_EQ(directory.members().size(), 2u);
  EXPECT_EQ(directory.name(directory.members()[0]), "a");
  const ZipMember* member = directory.find("t/0");
  ASSERT_NE(member, nullptr);
  EXPECT_EQ(directory.name(*member), "t/0");
  EXPECT_EQ(member->header_offset, 100u);
  EXPECT_EQ(member->size, 300u);
  EXPECT_EQ(member->compressed_size, 200u);
  EXPECT_EQ(member->crc, 0xfeedfaceu);
  EXPECT_EQ(member->flags, 8);
  EXPECT_EQ(member->method, 9);
  EXPECT_EQ(member->extra_length, 20);
  for (const char* name : {"", "t", "t/", "t/00", "u", "b"})
    EXPECT_EQ(directory.find(name), nullptr) << name;
}

TEST(ZipDirectory, AMemberEndsWhereTheNextOneOrTheDirectoryBegins) {
  const ZipDirectory directory =
      read(archive(1000, {{"c", 500}, {"a", 0}, {"d", 990}, {"b", 20}, {"also b", 20}}));
  EXPECT_EQ(directory.find("a")->end, 20u);
  EXPECT_EQ(directory.find("b")->end, 500u);
  EXPECT_EQ(directory.find("also b")->end, 500u);
  EXPECT_EQ(directory.find("c")->end, 990u);
  EXPECT_EQ(directory.find("d")->end, 1000u);
}

TEST(ZipDirectory, WhatLiesBeforeTheArchiveShiftsIt) {
  Bytes shifted(777);
  put(shifted, archive(1000, {{"a", 0, 5, 5}, {"b", 400, 600, 600}, {"c", 400, 601, 601}}));
  const ZipDirectory directory = read(shifted);
  EXPECT_EQ(directory.find("a")->header_offset, 777u);
  EXPECT_EQ(directory.find("a")->end, 1177u);
  EXPECT_EQ(directory.find("b")->header_offset, 1177u);
  EXPECT_EQ(directory.find("b")->end, 1777u);
  EXPECT_EQ(directory.find("c")->header_offset, ZipMember::kOutside)
      << "it reaches into the directory";
}

TEST(ZipDirectory, LargeValuesAreInTheZip64Field) {
  constexpr std::uint32_t kThere = UINT32_MAX;
  const auto one = [](Entry entry) { return *read(archive(1000, {std::move(entry)})).find("a"); };
  ZipMember member = one(
      {"a", kThere, kThere, kThere, 0, 0, 0, UINT16_MAX, field(1, {UINT64_C(1) << 40, 600, 50})});
  EXPECT_EQ(member.size, UINT64_C(1) << 40);
  EXPECT_EQ(member.compressed_size, 600u);
  EXPECT_EQ(member.header_offset, 50u);
  member = one(
      // only the fields that the entry could not hold
      {"a", 7, 8, kThere, 0, 0, 0, 0, field(1, {600, 50})});
  EXPECT_EQ(member.size, 8u);
  EXPECT_EQ(member.compressed_size, 600u);
  EXPECT_EQ(member.header_offset, 7u);
  Bytes second = field(0xcafe, {3});
  put(second, field(1, {50}));
  EXPECT_EQ(one({"a", kThere, 8, 8, 0, 0, 0, 0, second}).header_offset, 50u);
}

TEST(ZipDirectory, MembersThatCannotBeThereAreOutside) {
  constexpr std::uint32_t kThere = UINT32_MAX;
  const auto offset = [](Entry entry) {
    return read(archive(1000, {std::move(entry)})).find("a")->header_offset;
  };
  EXPECT_EQ(offset({"a", 1000, 0, 0}), 1000u);
  EXPECT_EQ(offset({"a", 1001, 0, 0}), ZipMember::kOutside);
  EXPECT_EQ(offset({"a", 1000, 1, 1}), ZipMember::kOutside);
  EXPECT_EQ(offset({"a", 999, 5, kThere - 1}), ZipMember::kOutside);
  EXPECT_EQ(offset({"a", kThere, 5, 5}), ZipMember::kOutside) << "no field";
  EXPECT_EQ(offset({"a", kThere, 5, kThere, 0, 0, 0, 0, field(1, {5})}), ZipMember::kOutside)
      << "half of it";
  for (const std::uint64_t far : {UINT64_MAX, UINT64_MAX - 1, UINT64_C(1) << 63, UINT64_C(1001)}) {
    EXPECT_EQ(offset({"a", kThere, 5, 5, 0, 0, 0, 0, field(1, {far})}), ZipMember::kOutside) << far;
    EXPECT_EQ(offset({"a", 10, 5, kThere, 0, 0, 0, 0, field(1, {far})}), ZipMember::kOutside)
        << far;
  }
  Bytes long_field = field(1, {50});
  long_field[2] = std::byte{9};  // longer than the extra data
  EXPECT_EQ(offset({"a", kThere, 5, 5, 0, 0, 0, 0, long_field}), ZipMember::kOutside);
  long_field.resize(3);
  EXPECT_EQ(offset({"a", kThere, 5, 5, 0, 0, 0, 0, long_field}), ZipMember::kOutside);
}

TEST(ZipDirectory, ListsWhatIsNamedAndWhatNamesImply) {
  const ZipDirectory directory = read(archive(10, {{"a/b/c"},
                                                   {"a-b/c"},
                                                   {"a0"},
                                                   {"a/b"},
                                                   {"a/b0"},
                                                   {"a/"},
                                                   {"empty/"},
                                                   {"z/y/x/w"},
                                                   {"a/b/d"},
                                                   {"a/b-/e"}}));
  EXPECT_EQ(names(directory.list("")), "a/ a-b/ a0 empty/ z/ ");
  EXPECT_EQ(names(directory.list("a")), "b b/ b-/ b0 ") << "a file and a directory of one name";
  EXPECT_EQ(names(directory.list("a/b")), "c d ");
  EXPECT_EQ(names(directory.list("z/y")), "x/ ");
  EXPECT_EQ(names(directory.list("empty")), "");
  EXPECT_EQ(names(directory.list("a/b/c")), "");
  EXPECT_EQ(names(directory.list("none")), "");
}

TEST(ZipDirectory, NamesThatAreNoKeysAreLeftOut) {
  const ZipDirectory directory = read(archive(10, {{"../a"},
                                                   {"/b"},
                                                   {"c//d"},
                                                   {""},
                                                   {"/"},
                                                   {"."},
                                                   {"e/./f"},
                                                   {"g/.."},
                                                   {std::string("h\0i", 3)},
                                                   {"good"}}));
  ASSERT_EQ(directory.members().size(), 1u);
  EXPECT_EQ(names(directory.list("")), "good ");
}

TEST(ZipDirectory, TheLastOfEqualNamesCounts) {
  const ZipDirectory directory = read(archive(1000, {{"a", 1}, {"b", 2}, {"a", 3}, {"a", 4}}));
  ASSERT_EQ(directory.members().size(), 2u);
  EXPECT_EQ(directory.find("a")->header_offset, 4u);
}

TEST(ZipDirectory, TheEndRecordIsTheLastWhoseCommentReachesTheEnd) {
  const std::vector<Entry> entries = {{"a", 1}};
  std::string fake = "the next archive: ";
  for (const std::byte b : end_record(7, 7)) fake += static_cast<char>(b);
  EXPECT_NE(read(archive(10, entries, fake + "!")).find("a"), nullptr)
      << "an end record in the comment";
  EXPECT_EQ(refusal(archive(10, entries, fake)), ErrorCode::corrupt)
      << "nobody can tell this one from the true one";
  Bytes followed = archive(10, entries);
  put(followed, std::string(3000, '\n'));
  EXPECT_NE(read(followed).find("a"), nullptr);
  EXPECT_NE(read(archive(10, entries, std::string(0xffff, 'x'))).find("a"), nullptr);
}

TEST(ZipDirectory, Zip64RecordsCount) {
  const Bytes directory = directory_of({{"a", 1}});
  const auto with = [&](std::uint64_t size, std::uint64_t offset, std::uint64_t record,
                        std::uint32_t disks = 1) {
    Bytes bytes(50);
    put(bytes, directory);
    put(bytes, end64(size, offset, record, disks));
    put(bytes, end_record(UINT32_MAX, UINT32_MAX));
    return bytes;
  };
  const std::uint64_t size = directory.size(), record = 50 + size;
  EXPECT_EQ(read(with(size, 50, record)).find("a")->header_offset, 1u);
  EXPECT_EQ(read(with(size, 40, record - 10)).find("a")->header_offset, 11u)
      << "ten bytes before the archive";
  EXPECT_EQ(refusal(with(size, 50, record, 2)), ErrorCode::not_supported);
  for (const std::uint64_t wrong : {size + 51, UINT64_MAX, UINT64_MAX - 49, UINT64_C(1) << 63}) {
    EXPECT_EQ(refusal(with(wrong, 50, record)), ErrorCode::corrupt) << wrong;
    EXPECT_EQ(refusal(with(size, wrong, record)), ErrorCode::corrupt) << wrong;
    EXPECT_EQ(read(with(size, 50, wrong)).find("a")->header_offset, 1u)
        << "it lies before its locator, too";
  }
  Bytes gone = with(size, 50, 0);
  gone[record] = std::byte{0};
  EXPECT_EQ(refusal(gone), ErrorCode::corrupt);
}

TEST(ZipDirectory, BrokenDirectoriesAreRefused) {
  const Bytes good = archive(100, {{"a", 1, 0, 0, 0, 0, 0, 0, field(2, {1})}, {"b", 2}});
  const std::size_t second = 100 + 46 + 1 + 12;
  const auto changed = [&](std::size_t at, std::uint8_t value) {
    Bytes bytes = good;
    bytes[at] = static_cast<std::byte>(value);
    return refusal(bytes);
  };
  EXPECT_EQ(changed(100, 0), ErrorCode::corrupt) << "no signature";
  EXPECT_EQ(changed(second, 0), ErrorCode::corrupt);
  EXPECT_EQ(changed(second + 28, 0x80), ErrorCode::corrupt) << "a long name";
  EXPECT_EQ(changed(second + 31, 0xff), ErrorCode::corrupt) << "a long extra field";
  EXPECT_EQ(changed(second + 33, 0xff), ErrorCode::corrupt) << "a long comment";
  EXPECT_EQ(changed(second + 34, 1), ErrorCode::not_supported) << "another disk";
  const std::size_t end = good.size() - 22;
  EXPECT_EQ(changed(end + 4, 1), ErrorCode::not_supported);
  EXPECT_EQ(changed(end + 12, 0xff), ErrorCode::corrupt) << "a large directory";
  EXPECT_EQ(changed(end + 12, 10), ErrorCode::corrupt) << "a small one";
  EXPECT_EQ(changed(end + 18, 0xff), ErrorCode::corrupt) << "far behind the end";
  EXPECT_EQ(refusal({}), ErrorCode::corrupt);
  EXPECT_EQ(refusal(Bytes(21)), ErrorCode::corrupt);
  EXPECT_EQ(refusal(Bytes(1 << 20)), ErrorCode::corrupt);
}

TEST(ZipDirectory, OneRoundTripUnlessItIsLarge) {
  std::vector<Entry> entries;
  for (int i = 0; i < 20'000; ++i)
    entries.push_back({"chunks/" + std::to_string(i), static_cast<std::uint32_t>(i)});
  MemoryStore store;
  store.set("small.zip", archive(1 << 20, {entries.begin(), entries.begin() + 1000}));
  store.set("large.zip", archive(1 << 20, entries));
  EXPECT_EQ(ZipDirectory::read(store, "small.zip").members().size(), 1000u);
  EXPECT_EQ(store.reads.size(), 1u);
  EXPECT_EQ(store.reads[0].bytes, 512u << 10);
  const ZipDirectory large = ZipDirectory::read(store, "large.zip");
  EXPECT_EQ(store.reads.size(), 3u);
  EXPECT_EQ(large.members().size(), 20'000u);
  EXPECT_EQ(large.find("chunks/19999")->header_offset, 19'999u);
  EXPECT_EQ(large.list("chunks").size(), 20'000u);
  EXPECT_EQ(failure([&] { ZipDirectory::read(store, "none.zip"); }).code(), ErrorCode::not_found);
  store.failing.insert("large.zip");
  EXPECT_EQ(failure([&] { ZipDirectory::read(store, "large.zip"); }).code(), ErrorCode::io);
}

/// An object that claims to be larger than its readable bytes.
class Pretending final : public Store {
 public:
  Pretending(Bytes end, std::uint64_t size) : end_(std::move(end)), size_(size) {}
  std::string url() const override { return "pretending"; }
  std::optional<std::uint64_t> size(const std::string&) override { return size_; }
  std::vector<Entry> list(const std::string&) override { return {}; }
  std::optional<Buffer> read(const std::string&, ByteRange range) override {
    if (!range.from_end) {
      largest = std::max(largest, range.length);
      return Buffer(10);
    }
    Buffer bytes(end_.size());
    std::copy(end_.begin(), end_.end(), bytes.data());
    return bytes;
  }
  std::optional<PartRead> read_into(const std::string&, std::uint64_t,
                                    std::span<std::byte>) override {
    return std::nullopt;
  }

  std::uint64_t largest = 0;  // that was asked for, beside the end

 private:
  const Bytes end_;
  const std::uint64_t size_;
};

TEST(ZipDirectory, AnArchiveThatChangesOrIsHugeIsRefusedInGoodTime) {
  const auto ending = [](std::uint32_t size, std::uint32_t offset) {
    const Bytes record = end_record(size, offset);
    Bytes bytes((512 << 10) - record.size());
    put(bytes, record);
    return bytes;
  };
  Pretending shrunk(Bytes(100), 200);
  EXPECT_EQ(failure([&] { ZipDirectory::read(shrunk, "x"); }).code(), ErrorCode::stale);
  constexpr std::uint64_t kSize = UINT64_C(3) << 30;
  Pretending cut(ending(1 << 30, 0), kSize);
  EXPECT_EQ(failure([&] { ZipDirectory::read(cut, "x"); }).code(), ErrorCode::stale)
      << "the directory comes short";
  Pretending huge(ending((1 << 30) + 1, 0), kSize);
  EXPECT_EQ(failure([&] { ZipDirectory::read(huge, "x"); }).code(), ErrorCode::not_supported);
  EXPECT_EQ(huge.largest, 0u) << "it was not even asked for";
}

TEST(ZipDirectory, NoiseGivesErrorsOrMembersInside) {
  std::mt19937 random(1);
  const Bytes good = [] {
    Bytes bytes(64);
    const Bytes directory = directory_of(
        {{"a", 1, 5, 5, 0, 0, 0, 0, field(1, {5, 5, 1})}, {"b/c", 9, 5, 5}, {"b/d", 20}});
    put(bytes, directory);
    put(bytes, end64(directory.size(), 64, 64 + directory.size()));
    put(bytes, end_record(UINT32_MAX, UINT32_MAX));
    return bytes;
  }();
  int read_well = 0;
  for (int round = 0; round < 20'000; ++round) {
    Bytes bad = good;
    for (unsigned changes = 1 + random() % 4; changes > 0; --changes) {
      constexpr unsigned kExtremes[] = {0x00, 0xff, 0x7f, 0x80};
      bad[64 + random() % (bad.size() - 64)] =
          static_cast<std::byte>(random() % 2 ? kExtremes[random() % 4] : random());
    }
    try {
      const ZipDirectory directory = read(bad);
      ++read_well;
      for (const ZipMember& member : directory.members()) {
        ASSERT_LE(member.end, bad.size());
        if (member.header_offset == ZipMember::kOutside) continue;
        ASSERT_LE(member.header_offset, bad.size());
        ASSERT_LE(member.compressed_size, bad.size() - member.header_offset);
        ASSERT_FALSE(directory.name(member).empty());
      }
      directory.list("b");
    } catch (const Error& error) {
      ASSERT_TRUE(error.code() == ErrorCode::corrupt || error.code() == ErrorCode::not_supported)
          << error.what();
    }
  }
  EXPECT_GT(read_well, 1000);
}

}  // namespace zip_directory_test
}  // namespace batchfs
