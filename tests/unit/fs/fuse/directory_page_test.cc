#include "fs/fuse/directory_page.h"

#include <cstring>

#include "tests/unit/fs/mounted.h"

namespace batchfs {
namespace directory_page_test {

struct Entry {
  std::string name;
  std::uint64_t ino, next;
  std::uint32_t type;  // as of readdir(3)
};

/// Source: struct fuse_dirent of include/uapi/linux/fuse.h.
std::vector<Entry> parse(const std::string& page) {
  std::vector<Entry> entries;
  for (std::size_t at = 0; at < page.size();) {
    std::uint64_t numbers[2];
    std::uint32_t lengths[2];
    std::memcpy(numbers, page.data() + at, sizeof numbers);
    std::memcpy(lengths, page.data() + at + 16, sizeof lengths);
    entries.push_back({page.substr(at + 24, lengths[0]), numbers[0], numbers[1], lengths[1]});
    at += (24 + lengths[0] + 7) / 8 * 8;
  }
  return entries;
}

TEST(DirectoryPage, HoldsWhatFits) {
  MemoryData data;
  data.declare("t", "<i4", {"x"}, {10}, {2});
  Mounted mounted(data);
  const Files& files = mounted.served();
  const auto all = parse(directory_page(files, kRootIno, 4096, 0));
  ASSERT_EQ(all.size(), 6u);
  EXPECT_EQ(all[0].name, ".");
  EXPECT_EQ(all[1].name, "..");
  EXPECT_EQ(all[2].name, "arrays");
  EXPECT_EQ(all[2].type, 4u);
  EXPECT_EQ(all[5].name, "views");
  EXPECT_EQ(all[3].name, "store.json");
  EXPECT_EQ(all[3].type, 8u);
  // Page by page, from the end of the previous one.
  std::vector<std::string> names;
  for (std::uint64_t offset = 0;;) {
    const auto page = parse(directory_page(files, kRootIno, 80, offset));
    if (page.empty()) break;
    for (const Entry& entry : page) names.push_back(entry.name);
    offset = page.back().next;
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{".", "..", "arrays", "store.json", "summary.txt", "views"}));
}

}  // namespace directory_page_test
}  // namespace batchfs
