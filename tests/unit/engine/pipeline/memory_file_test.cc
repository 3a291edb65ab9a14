#include "engine/pipeline/memory_file.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "tests/unit/descriptor_attacks.h"

namespace batchfs {
namespace memory_file_test {

/// With huge pages if this process may use them, and without.
class MemoryFileTest : public testing::TestWithParam<bool> {
 protected:
  const MemoryFiles files_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Pages, MemoryFileTest, testing::Bool(),
                         [](const auto& parameter) { return parameter.param ? "huge" : "small"; });

TEST_P(MemoryFileTest, IsReadableThroughItsDescriptorAndSealed) {
  for (const std::uint64_t size : {10000u, 5u << 20}) {
    MemoryFile file = files_.create("test", size);
    std::memset(file.data(), 7, file.size());
    file.seal();
    unsigned char byte = 0;
    EXPECT_EQ(::pread(file.fd(), &byte, 1, 9999), 1);
    EXPECT_EQ(byte, 7);
    EXPECT_EQ(::pwrite(file.fd(), &byte, 1, 0), -1);
    EXPECT_EQ(::ftruncate(file.fd(), 1), -1);
    EXPECT_EQ(::ftruncate(file.fd(), 20 << 20), -1);
    EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd(), 0), MAP_FAILED);
    EXPECT_GE(files_.memory_of(size), size);
    EXPECT_LE(files_.memory_of(size), size + size / 2);
  }
}

/// Successful attacks on files that were handed over; empty if there are none.
std::string attacks_on_files_of(const MemoryFiles& files) {
  std::string worked;
  files.keep_spares(64 << 20);
  for (const std::uint64_t size : {10000u, 3u << 20}) {
    for (const bool reusable : {false, true}) {
      for (const bool used_before : {false, true}) {
        MemoryFile file =
            reusable ? files.create_reusable("test", size) : files.create("test", size);
        std::memset(file.data(), 7, size);
        file.seal();
        const int passed = ::dup(file.fd());
        const std::string attacks = attacks_that_work(passed);
        ::close(passed);
        if (!attacks.empty())
          worked += std::to_string(size) + (reusable ? " reusable" : "") +
                    (used_before ? " used before" : "") + ": " + attacks + "; ";
        const auto is_seven = [](std::byte byte) { return byte == std::byte{7}; };
        if (!std::all_of(file.span().begin(), file.span().end(), is_seven))
          worked += "the contents changed; ";
      }
    }
  }
  return worked;
}

TEST_P(MemoryFileTest, WhoeverHasADescriptorCannotChangeAFile) {
  EXPECT_EQ(attacks_on_files_of(files_), "");
}

TEST_P(MemoryFileTest, WhoeverHasADescriptorCannotChangeAFileInAContainer) {
  EXPECT_EQ(in_container([] { return attacks_on_files_of(MemoryFiles(GetParam())); }), "");
}

TEST_P(MemoryFileTest, WhatIsWrittenAfterSealingReachesThoseWhoMapIt) {
  constexpr std::uint64_t kSize = 3 << 20;  // staging memory is such a file
  MemoryFile file = files_.create("test", kSize);
  file.seal();
  void* mapped = ::mmap(nullptr, kSize, PROT_READ, MAP_SHARED, file.fd(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  file.data()[kSize - 1] = std::byte{7};
  EXPECT_EQ(static_cast<const unsigned char*>(mapped)[kSize - 1], 7);
  ::munmap(mapped, kSize);
}

TEST_P(MemoryFileTest, ALeaseThatAReaderTookKeepsNobodyWaiting) {
  files_.keep_spares(64 << 20);
  for (const std::uint64_t size : {10000u, 3u << 20}) {
    int passed = -1;
    const std::byte* first;
    {
      MemoryFile file = files_.create_reusable("test", size);
      first = file.data();
      file.seal();
      passed = ::dup(file.fd());
    }
    ::fcntl(passed, F_SETSIG, SIGURG);
    ::fcntl(passed, F_SETLEASE, F_WRLCK);
    const auto before = std::chrono::steady_clock::now();
    const MemoryFile other = files_.create_reusable("test", size);
    EXPECT_NE(other.data(), first);
    EXPECT_LT(std::chrono::steady_clock::now() - before,
              std::chrono::seconds(10));  // leases are good for 45
    ::close(passed);
  }
}

TEST_P(MemoryFileTest, ASizeThatCannotBeIsAnError) {
  EXPECT_THROW(files_.create("test", std::uint64_t{1} << 63), Error);
}

TEST_P(MemoryFileTest, MovesAndMayBeEmpty) {
  MemoryFile a = files_.create("test", 100);
  const std::byte* data = a.data();
  MemoryFile b(std::move(a));
  EXPECT_EQ(b.data(), data);
  EXPECT_EQ(a.fd(), -1);
  MemoryFile empty = files_.create("test", 0);
  EXPECT_EQ(empty.span().size(), 0u);
  empty.seal();
}

TEST_P(MemoryFileTest, KnowsWhatOthersStillMap) {
  constexpr std::uint64_t kSize = 4 << 20;
  EXPECT_EQ(files_.mapped_by_others(), 0u);
  void* mapped;
  {
    MemoryFile file = files_.create("test", kSize);
    std::memset(file.data(), 7, kSize);
    file.seal();
    mapped = ::mmap(nullptr, kSize, PROT_READ, MAP_SHARED, file.fd(), 0);
    ASSERT_NE(mapped, MAP_FAILED);
    EXPECT_EQ(files_.mapped_by_others(), 0u);
    const MemoryFile moved(std::move(file));
    EXPECT_EQ(files_.mapped_by_others(), 0u);
  }
  EXPECT_EQ(files_.mapped_by_others(), files_.huge_pages() ? kSize : 0);
  EXPECT_EQ(static_cast<const unsigned char*>(mapped)[kSize - 1], 7);
  ::munmap(mapped, kSize);
  EXPECT_EQ(files_.mapped_by_others(), 0u);
}

/// The mapping that a reader of the hand-off makes of a received descriptor.
class Mapped {
 public:
  Mapped(int fd, std::uint64_t size)
      : size_(size), data_(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0)) {
    EXPECT_NE(data_, MAP_FAILED);
  }
  ~Mapped() { ::munmap(data_, size_); }
  unsigned char operator[](std::size_t i) const {
    return static_cast<const unsigned char*>(data_)[i];
  }

 private:
  const std::uint64_t size_;
  void* const data_;
};

TEST_P(MemoryFileTest, AReusableFileIsUsedAgainWhenNobodyHasIt) {
  for (const std::uint64_t size : {3u << 20, 10000u}) {
    SCOPED_TRACE(size);
    files_.keep_spares(64 << 20);
    const std::byte* first;
    {
      MemoryFile file = files_.create_reusable("test", size);
      first = file.data();
      std::memset(file.data(), 7, size);
      file.seal();
      // A sealed one is closed to writing, used before or not.
      unsigned char byte = 1;
      EXPECT_EQ(::pwrite(file.fd(), &byte, 1, 0), -1);
      EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd(), 0),
                MAP_FAILED);
      EXPECT_EQ(files_.spare_bytes(), 0u);
    }
    EXPECT_GE(files_.spare_bytes(), size);
    {
      MemoryFile other = files_.create_reusable("test", size + 1);  // not of that size
      EXPECT_NE(other.data(), first);
      MemoryFile fresh = files_.create("test", size);
      EXPECT_NE(fresh.data(), first);
      MemoryFile again = files_.create_reusable("test", size);
      EXPECT_EQ(again.data(), first);
      EXPECT_EQ(again.size(), size);
      EXPECT_EQ(files_.spare_bytes(), 0u);
      again.data()[size - 1] = std::byte{9};
      again.seal();
      const Mapped reader(again.fd(), size);
      EXPECT_EQ(reader[0], 7);
      EXPECT_EQ(reader[size - 1], 9);
      unsigned char byte = 1;
      EXPECT_EQ(::pwrite(again.fd(), &byte, 1, 0), -1);
    }
    files_.keep_spares(0);
    EXPECT_EQ(files_.spare_bytes(), 0u);
  }
  EXPECT_EQ(files_.mapped_by_others(), 0u);
}

TEST_P(MemoryFileTest, WhatAReaderStillMapsIsNotUsedAgain) {
  constexpr std::uint64_t kSize = 3 << 20;
  files_.keep_spares(64 << 20);
  std::optional<Mapped> mapped;
  int passed = -1;
  const std::byte* first;
  {
    MemoryFile file = files_.create_reusable("test", kSize);
    first = file.data();
    std::memset(file.data(), 7, kSize);
    file.seal();
    mapped.emplace(file.fd(), kSize);
    passed = ::dup(file.fd());  // the same open file, like a descriptor sent over a socket
  }
  {
    MemoryFile other = files_.create_reusable("test", kSize);
    EXPECT_NE(other.data(), first);
    std::memset(other.data(), 8, kSize);
    EXPECT_EQ((*mapped)[kSize - 1], 7);
    mapped.reset();
    MemoryFile third = files_.create_reusable("test", kSize);  // a descriptor is still there
    EXPECT_NE(third.data(), first);
  }
  ::close(passed);
  // Three are spare now, in the order of their ends; each is given out once.
  std::vector<MemoryFile> all;
  std::set<const std::byte*> places;
  for (int i = 0; i < 3; ++i)
    places.insert(all.emplace_back(files_.create_reusable("test", kSize)).data());
  EXPECT_EQ(places.size(), 3u);
  EXPECT_TRUE(places.contains(first));
  EXPECT_EQ(files_.spare_bytes(), 0u);
}

// The kernel notifies the holder of a lease when somebody opens the file, by SIGIO unless another
// signal is set.
TEST_P(MemoryFileTest, WhoLooksAtAFileThatWaitsEndsNobody) {
  constexpr std::uint64_t kSize = 3 << 20;
  files_.keep_spares(64 << 20);
  std::string name;
  {
    MemoryFile file = files_.create_reusable("test", kSize);
    name = "/proc/self/fd/" + std::to_string(file.fd());
  }
  std::atomic<bool> done{false};
  std::thread looking([&] {
    while (!done) {
      const int fd = ::open(name.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
      if (fd >= 0) ::close(fd);
    }
  });
  for (int i = 0; i < 3000; ++i) {
    const MemoryFile file = files_.create_reusable("test", kSize);
  }
  done = true;
  looking.join();
}

TEST_P(MemoryFileTest, NoMoreIsKeptThanWasSaid) {
  constexpr std::uint64_t kSize = 2 << 20;
  { MemoryFile file = files_.create_reusable("test", kSize); }
  EXPECT_EQ(files_.spare_bytes(), 0u);  // keep_spares() was not called
  files_.keep_spares(2 * kSize);
  {
    std::vector<MemoryFile> three;
    for (int i = 0; i < 3; ++i) three.push_back(files_.create_reusable("test", kSize));
    std::vector<MemoryFile> moved = std::move(three);  // moving destroys none
    EXPECT_EQ(files_.spare_bytes(), 0u);
  }
  EXPECT_EQ(files_.spare_bytes(), 2 * kSize);
  EXPECT_EQ(files_.drop_spares(), 2 * kSize);
  EXPECT_EQ(files_.drop_spares(), 0u);
  { MemoryFile file = files_.create_reusable("test", kSize); }
  EXPECT_EQ(files_.spare_bytes(), kSize);  // dropping the present spares does not disable them
}

}  // namespace memory_file_test
}  // namespace batchfs
