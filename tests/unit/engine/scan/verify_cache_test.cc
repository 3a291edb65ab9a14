#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "engine/scan/verify.h"
#include "engine/store/cache/cache_files.h"
#include "tests/unit/engine/store/temporary_directory.h"

namespace batchfs {
namespace verify_cache_test {

TEST(VerifyCache, ComparesChecksums) {
  const TemporaryDirectory directory;
  const std::string path = directory / "cache";
  {
    CacheFiles files(path, {});
    const std::vector<std::byte> bytes(1000);
    for (const char* name : {"a", "b", "c"})
      files.put(CacheFiles::name_of(name), {"version"}, bytes);
  }
  const auto verify = [&] {
    VerifyCollector collector(10);
    verify_cache(path, {.threads = 2}, collector);
    return collector.report();
  };
  EXPECT_EQ(verify().cache_entries, 3u);
  EXPECT_EQ(verify().problems, 0u);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path))
    if (entry.is_regular_file() && entry.file_size() == 1512) {
      std::fstream(entry.path(), std::ios::in | std::ios::out | std::ios::binary)
          .seekp(700)
          .put('x');
      break;
    }
  const VerifyReport report = verify();
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].what, damage::kCacheEntry);
  EXPECT_TRUE(std::filesystem::exists(report.findings[0].key)) << "it is not removed";
  VerifyCollector collector(10);
  EXPECT_THROW(verify_cache(directory / "none", {}, collector), Error);
}

TEST(VerifyCache, TheLastProgressIsOfAllFolders) {
  const TemporaryDirectory directory;
  const std::string path = directory / "cache";
  CacheFiles files(path, {});
  std::int64_t done = 0, all = 1;
  VerifyCollector collector(10);
  verify_cache(path,
               {.threads = 2,
                .progress =
                    [&](std::int64_t of, std::int64_t total) {
                      done = of;
                      all = total;
                    }},
               collector);
  EXPECT_EQ(done, all);
}

}  // namespace verify_cache_test
}  // namespace batchfs
