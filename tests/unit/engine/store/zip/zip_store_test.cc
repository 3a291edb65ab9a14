#include "engine/store/zip/zip_store.h"

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <thread>

#include <gtest/gtest.h>

#include "tests/unit/engine/store/zip/odd_archives.h"
#include "tests/unit/engine/store/zip/zip64_archives.h"
#include "tests/unit/engine/store/zip/zip_archives.h"

namespace batchfs {
namespace zip_store_test {

using Bytes = std::vector<unsigned char>;

template <std::size_t N>
Bytes bytes_of(const unsigned char (&array)[N]) {
  return Bytes(array, array + N);
}

Bytes pattern(std::size_t size, std::size_t seed) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<unsigned char>(i / 9 * 7 + i / 150 + seed);
  return bytes;
}

/// One object in memory; counts the reads.
class OneObject final : public Store {
 public:
  OneObject(Bytes bytes, bool local) : bytes_(std::move(bytes)), local_(local) {}

  std::string url() const override { return "memory"; }
  bool is_local() const override { return local_; }
  std::optional<std::uint64_t> size(const std::string& key) override {
    return key == "x.zip" ? std::optional<std::uint64_t>(bytes_.size()) : std::nullopt;
  }
  std::vector<Entry> list(const std::string&) override { return {}; }

  std::optional<Buffer> read(const std::string& key, ByteRange range) override {
    ++reads;
    if (key != "x.zip") return std::nullopt;
    if (fail) throw Error(ErrorCode::io, "the cable is cut");
    if (range.from_end)
      range.offset = bytes_.size() - std::min<std::uint64_t>(range.length, bytes_.size());
    const std::uint64_t begin = std::min<std::uint64_t>(range.offset, bytes_.size());
    Buffer part(std::min<std::uint64_t>(range.length, bytes_.size() - begin));
    std::copy_n(bytes_.data() + begin, part.size(), reinterpret_cast<unsigned char*>(part.data()));
    return part;
  }
  std::optional<PartRead> read_into(const std::string& key, std::uint64_t offset,
                                    std::span<std::byte> out) override {
    const auto bytes = read(key, {offset, out.size()});
    if (!bytes) return std::nullopt;
    std::copy_n(bytes->data(), bytes->size(), out.data());
    return PartRead{bytes->size(), bytes_.size()};
  }

  std::atomic<int> reads{0};
  std::atomic<bool> fail{false};

 private:
  const Bytes bytes_;
  const bool local_;
};

std::shared_ptr<Store> open(const Bytes& archive, bool local = true) {
  return open_zip_store(std::make_shared<OneObject>(archive, local), "x.zip");
}

std::optional<Bytes> read(Store& store, const std::string& key, ByteRange range = {}) {
  const std::optional<Buffer> bytes = store.read(key, range);
  if (!bytes) return std::nullopt;
  const auto* data = reinterpret_cast<const unsigned char*>(bytes->data());
  return Bytes(data, data + bytes->size());
}

Bytes slice(const Bytes& bytes, std::size_t begin, std::size_t length) {
  return Bytes(bytes.begin() + static_cast<std::ptrdiff_t>(begin),
               bytes.begin() + static_cast<std::ptrdiff_t>(begin + length));
}

std::string names(const std::vector<Store::Entry>& entries) {
  std::string text;
  for (const Store::Entry& entry : entries) text += entry.name + (entry.is_prefix ? "/ " : " ");
  return text;
}

template <class Body>
ErrorCode error_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::internal;
}

/// Checks the contents of an archive of make_zip_archives.py's MEMBERS.
void expect_members(Store& store) {
  const std::string metadata = R"({"zarr_format": 3})";
  EXPECT_EQ(read(store, "zarr.json"), Bytes(metadata.begin(), metadata.end()));
  EXPECT_EQ(read(store, "t/c/0"), pattern(600, 1));
  EXPECT_EQ(read(store, "t/c/1"), pattern(3000, 2));
  EXPECT_EQ(read(store, "t/c/10"), Bytes());
  EXPECT_EQ(read(store, "t-two/c/0"), pattern(5, 3));
  EXPECT_EQ(read(store, "t/c/2"), std::nullopt);
  EXPECT_EQ(read(store, "t/c"), std::nullopt);
  EXPECT_EQ(read(store, "none"), std::nullopt);
  EXPECT_EQ(store.size("t/c/1"), 3000);
  EXPECT_EQ(store.size("t"), std::nullopt);
  EXPECT_EQ(names(store.list("")), "none/ t/ t-two/ zarr.json ");
  EXPECT_EQ(names(store.list("t")), "c/ ");
  EXPECT_EQ(names(store.list("t/c")), "0 1 10 ");
  EXPECT_EQ(names(store.list("none")), "");
  EXPECT_EQ(names(store.list("nowhere")), "");
}

class ZipStore : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Places, ZipStore, testing::Values(true, false),
                         [](const auto& where) { return where.param ? "local" : "remote"; });

TEST_P(ZipStore, ReadsWhatPythonWrites) {
  for (const Bytes& archive : {bytes_of(kPlain), bytes_of(kComment), bytes_of(kStreamed),
                               bytes_of(kZip64), bytes_of(kPrefixed), bytes_of(kPrefixedZip64)}) {
    const auto store = open(archive, GetParam());
    expect_members(*store);
    expect_members(*store);  // now with known places of the members
  }
}

TEST_P(ZipStore, BytesAfterTheArchiveAreAllowed) {
  Bytes archive = bytes_of(kPlain);
  archive.resize(archive.size() + 1000);
  expect_members(*open(archive, GetParam()));
}

TEST_P(ZipStore, LocalExtraFieldsAreTheirOwn) {
  const auto store = open(bytes_of(kOtherExtras), GetParam());
  EXPECT_EQ(read(*store, "t/c/0"), pattern(600, 1));
  EXPECT_EQ(read(*store, "t/c/1"), pattern(3000, 2));
}

TEST_P(ZipStore, ReadsRanges) {
  for (const std::string key : {"t/c/0", "t/c/1"}) {
    const Bytes all = key == "t/c/0" ? pattern(600, 1) : pattern(3000, 2);
    for (const bool fresh : {true, false}) {
      auto store = open(bytes_of(kPlain), GetParam());
      const auto part = [&](ByteRange range) {
        if (fresh) store = open(bytes_of(kPlain), GetParam());
        return read(*store, key, range);
      };
      EXPECT_EQ(part({0, 1}), slice(all, 0, 1));
      EXPECT_EQ(part({100, 57}), slice(all, 100, 57));
      EXPECT_EQ(part({599, 1000000}), slice(all, 599, all.size() - 599));
      EXPECT_EQ(part({all.size(), 7}), Bytes());
      EXPECT_EQ(part({UINT64_MAX, UINT64_MAX}), Bytes());
      EXPECT_EQ(part({0, 10, true}), slice(all, all.size() - 10, 10));
      EXPECT_EQ(part({0, 100000, true}), all);
    }
  }
}

TEST_P(ZipStore, ReadsInto) {
  const auto store = open(bytes_of(kPlain), GetParam());
  for (const std::string key : {"t/c/0", "t/c/1"}) {
    const Bytes all = key == "t/c/0" ? pattern(600, 1) : pattern(3000, 2);
    Bytes out(200);
    const auto got =
        store->read_into(key, all.size() - 150, std::as_writable_bytes(std::span(out)));
    ASSERT_TRUE(got);
    EXPECT_EQ(got->bytes, 150);
    EXPECT_EQ(got->object_size, all.size());
    EXPECT_EQ(slice(out, 0, 150), slice(all, all.size() - 150, 150));
    EXPECT_EQ(slice(out, 150, 50), Bytes(50));
    EXPECT_EQ(store->read_into(key, all.size(), std::as_writable_bytes(std::span(out)))->bytes, 0);
  }
  EXPECT_FALSE(store->read_into("t/c/7", 0, {}));
}

TEST_P(ZipStore, TheLastOfEqualNamesCounts) {
  const auto store = open(bytes_of(kDuplicates), GetParam());
  const std::string last = "the last one";
  EXPECT_EQ(read(*store, "x"), Bytes(last.begin(), last.end()));
  EXPECT_EQ(names(store->list("")), "x ");
}

TEST_P(ZipStore, NamesThatAreNoKeysAreLeftOut) {
  const auto store = open(bytes_of(kBadNames), GetParam());
  EXPECT_EQ(names(store->list("")), "good ");
  EXPECT_EQ(error_of([&] { store->read("../up"); }), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of([&] { store->size("/absolute"); }), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of([&] { store->list("a/.."); }), ErrorCode::invalid_argument);
}

TEST_P(ZipStore, AnArchiveMayBeEmpty) {
  EXPECT_EQ(names(open(bytes_of(kEmpty), GetParam())->list("")), "");
}

TEST_P(ZipStore, WhatIsNotSupportedIsNamed) {
  const auto store = open(bytes_of(kBzip2), GetParam());
  EXPECT_EQ(store->size("x"), 600);
  try {
    store->read("x");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_supported);
    EXPECT_STREQ(error.what(),
                 "zip members compressed by method 12 (bzip2) are not supported; only stored and "
                 "deflate are (memory/x.zip/x)");
  }
}

/// kDuplicates' last member, to change its fields: offsets from the directory's entry.
std::size_t last_entry(const Bytes& archive) { return archive.size() - 22 - 47; }

TEST_P(ZipStore, EncryptedMembersAreRefused) {
  Bytes archive = bytes_of(kDuplicates);
  archive[last_entry(archive) + 8] |= 1;
  EXPECT_EQ(error_of([&] { open(archive, GetParam())->read("x"); }), ErrorCode::not_supported);
}

TEST_P(ZipStore, SeveralDisksAreRefused) {
  Bytes archive = bytes_of(kPlain);
  archive[archive.size() - 18] = 1;
  EXPECT_EQ(error_of([&] { open(archive, GetParam()); }), ErrorCode::not_supported);
  archive = bytes_of(kDuplicates);
  archive[last_entry(archive) + 34] = 3;
  EXPECT_EQ(error_of([&] { open(archive, GetParam()); }), ErrorCode::not_supported);
}

TEST_P(ZipStore, HostileMembersAreRefused) {
  const auto refused = [&](std::size_t field, std::initializer_list<unsigned char> value) {
    Bytes archive = bytes_of(kDuplicates);
    std::copy(value.begin(), value.end(),
              archive.begin() + static_cast<std::ptrdiff_t>(last_entry(archive) + field));
    const auto store = open(archive, GetParam());
    EXPECT_EQ(error_of([&] { store->read("x"); }), ErrorCode::corrupt) << field;
    EXPECT_EQ(error_of([&] { store->read("x", {0, 1}); }), ErrorCode::corrupt) << field;
    Bytes out(4);
    EXPECT_EQ(error_of([&] { store->read_into("x", 0, std::as_writable_bytes(std::span(out))); }),
              ErrorCode::corrupt)
        << field;
  };
  refused(42, {0xff, 0xff, 0, 0});          // begins past the end
  refused(42, {0xff, 0xff, 0xff, 0xff});    // Zip64 without the field
  refused(42, {1, 0, 0, 0});                // begins where no member does
  refused(20, {0xff, 0xff, 0xff, 0x7f});    // is longer than the archive
  refused(20, {13, 0, 0, 0, 13, 0, 0, 0});  // reaches into the next part
  refused(24, {13, 0, 0, 0});               // stored, with two sizes
  Bytes bomb = bytes_of(kDuplicates);
  bomb[last_entry(bomb) + 10] = 8;  // deflated from 12 bytes to 2 GB
  bomb[last_entry(bomb) + 27] = 0x7f;
  EXPECT_EQ(error_of([&] { open(bomb, GetParam())->read("x"); }), ErrorCode::corrupt);
}

TEST_P(ZipStore, MembersMayNotOverlap) {
  // Two entries, one local header: the trick of zip bombs.
  Bytes archive = bytes_of(kDuplicates);
  const std::size_t entry = last_entry(archive);
  archive[entry + 46] = 'y';  // "y", which begins at the first "x"
  std::fill_n(archive.begin() + static_cast<std::ptrdiff_t>(entry + 42), 4, 0);
  const auto store = open(archive, GetParam());
  EXPECT_EQ(error_of([&] { store->read("y"); }), ErrorCode::corrupt);
}

TEST_P(ZipStore, DamageIsNeverDelivered) {
  // Flips every bit of the archive in turn: a member is right, refused, or missing because its name
  // changed.
  const Bytes good = bytes_of(kPlain);
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (int bit = 0; bit < 8; bit += GetParam() ? 1 : 5) {
      Bytes bad = good;
      bad[i] ^= static_cast<unsigned char>(1 << bit);
      try {
        const auto store = open(bad, GetParam());
        for (const auto& [key, expected] :
             std::map<std::string, Bytes>{{"t/c/0", pattern(600, 1)},
                                          {"t/c/1", pattern(3000, 2)},
                                          {"t-two/c/0", pattern(5, 3)}}) {
          try {
            const auto got = read(*store, key);
            EXPECT_EQ(got.value_or(expected), expected) << i << " " << bit;
          } catch (const Error&) {
          }
          try {
            read(*store, key, {3, 2});
          } catch (const Error&) {
          }
        }
        store->list("t");
      } catch (const Error&) {
      }
    }
  }
}

TEST_P(ZipStore, ATruncatedArchiveIsRefused) {
  for (const Bytes& good : {bytes_of(kComment), bytes_of(kZip64)}) {
    for (std::size_t size = 0; size < good.size(); ++size) {
      const ErrorCode code = error_of([&] { open(slice(good, 0, size), GetParam()); });
      EXPECT_EQ(code, ErrorCode::corrupt) << size;
    }
  }
}

TEST(ZipStoreRemote, OneRoundTripForAMember) {
  const auto object = std::make_shared<OneObject>(bytes_of(kPlain), false);
  const auto store = open_zip_store(object, "x.zip");
  EXPECT_FALSE(store->is_local());
  EXPECT_EQ(object->reads, 1);  // the end, with the directory in it
  read(*store, "t/c/0");
  EXPECT_EQ(object->reads, 2);
  read(*store, "t/c/1", {2000, 10});
  EXPECT_EQ(object->reads, 3);
  read(*store, "t/c/1");
  EXPECT_EQ(object->reads, 4);
}

TEST(ZipStoreRemote, FailuresOfTheParentAreFailures) {
  const auto object = std::make_shared<OneObject>(bytes_of(kPlain), false);
  const auto store = open_zip_store(object, "x.zip");
  object->fail = true;
  EXPECT_EQ(error_of([&] { store->read("t/c/0"); }), ErrorCode::io);
  EXPECT_EQ(error_of([&] { store->read("t/c/0", {100, 5}); }), ErrorCode::io);
  EXPECT_EQ(error_of([&] { open_zip_store(object, "x.zip"); }), ErrorCode::io);
  EXPECT_EQ(error_of([&] { open_zip_store(object, "y.zip"); }), ErrorCode::not_found);
}

/// A stored member of 300,000 bytes between two others, with or without a gap after it.
Bytes large_archive(std::size_t extra, std::size_t gap) {
  Bytes out;
  const auto put = [&out](std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out.push_back(static_cast<unsigned char>(value >> 8 * i));
  };
  const Bytes data = pattern(300000, 9);
  put(0x04034b50, 4), put(20, 2), put(0, 2), put(0, 2), put(0, 4), put(0, 4);
  put(data.size(), 4), put(data.size(), 4), put(3, 2), put(extra, 2);
  for (const char c : {'b', 'i', 'g'}) out.push_back(static_cast<unsigned char>(c));
  out.resize(out.size() + extra);
  out.insert(out.end(), data.begin(), data.end());
  out.resize(out.size() + gap);
  const std::size_t directory = out.size();
  put(0x02014b50, 4), put(20, 2), put(20, 2), put(0, 2), put(0, 2), put(0, 4), put(0, 4);
  put(data.size(), 4), put(data.size(), 4), put(3, 2), put(0, 2), put(0, 2), put(0, 2), put(0, 2),
      put(0, 4), put(0, 4);
  for (const char c : {'b', 'i', 'g'}) out.push_back(static_cast<unsigned char>(c));
  const std::size_t size = out.size() - directory;
  put(0x06054b50, 4), put(0, 2), put(0, 2), put(1, 2), put(1, 2), put(size, 4), put(directory, 4),
      put(0, 2);
  return out;
}

TEST(ZipStoreRemote, TheEndOfALargeMemberIsGuessed) {
  const Bytes all = pattern(300000, 9);
  for (const auto& [extra, gap, reads] :
       {std::tuple{100, 0, 2}, std::tuple{0, 100, 3}, std::tuple{100, 100, 3}}) {
    const auto object = std::make_shared<OneObject>(
        large_archive(static_cast<std::size_t>(extra), static_cast<std::size_t>(gap)), false);
    const auto store = open_zip_store(object, "x.zip");
    object->reads = 0;
    EXPECT_EQ(read(*store, "big", {0, 16, true}), slice(all, all.size() - 16, 16));
    EXPECT_EQ(object->reads, reads);
    EXPECT_EQ(read(*store, "big", {200000, 16}), slice(all, 200000, 16));
    EXPECT_EQ(object->reads, reads + 1);
    // The archive's checksum of it is invalid.
    EXPECT_EQ(error_of([&] { read(*store, "big"); }), ErrorCode::corrupt);
  }
}

TEST(ZipStoreLocal, OpenStoreKnowsArchivesFromDirectories) {
  std::string name = (std::filesystem::temp_directory_path() / "zip-store-XXXXXX").string();
  ASSERT_NE(::mkdtemp(name.data()), nullptr);
  const std::filesystem::path directory = name;
  std::ofstream(directory / "a.zip", std::ios::binary)
      .write(reinterpret_cast<const char*>(kPlain), sizeof kPlain);
  std::filesystem::create_directory(directory / "d.zip");
  std::ofstream(directory / "d.zip" / "k") << "v";
  std::ofstream(directory / "no.zip") << "not an archive";

  const auto store = open_store((directory / "a.zip").string());
  EXPECT_EQ(store->url(), (directory / "a.zip").string());
  EXPECT_TRUE(store->is_local());
  expect_members(*store);
  expect_members(*open_store("file://" + (directory / "a.zip").string()));
  EXPECT_EQ(read(*open_store((directory / "d.zip").string()), "k"), Bytes{'v'});
  EXPECT_EQ(error_of([&] { open_store((directory / "no.zip").string()); }), ErrorCode::corrupt);
  EXPECT_EQ(error_of([&] { open_store((directory / "absent.zip").string()); }),
            ErrorCode::not_found);
  std::filesystem::remove_all(directory);
}

}  // namespace zip_store_test
}  // namespace batchfs
