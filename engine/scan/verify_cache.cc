#include <algorithm>
#include <thread>

#include "engine/pipeline/executor.h"
#include "engine/scan/verify.h"
#include "engine/scan/verify_slots.h"
#include "engine/store/cache/cache_files.h"

namespace batchfs {

void verify_cache(const std::string& directory, const VerifyOptions& options,
                  VerifyCollector& collector) {
  std::exception_ptr failed;
  std::mutex mutex;  // guards `failed`
  bool cancelled = false;
  std::int64_t done = 0;
  const auto tick = [&] {
    if (!cancelled && options.cancelled && options.cancelled()) {
      cancelled = true;
      collector.interrupt();
    }
    if (options.progress) options.progress(done, CacheFiles::kFolders);
    return !cancelled;
  };
  const int threads = options.threads > 0
                          ? options.threads
                          : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  WorkSlots slots(UINT64_MAX, threads, tick);
  Executor executor(threads);
  for (int folder = 0; folder < CacheFiles::kFolders && slots.acquire(0); ++folder, ++done) {
    executor.post(kPrefetch, [&, folder] {
      try {
        CacheFiles::check_folder(
            directory, folder,
            [&](const std::string& path, std::uint64_t bytes, const std::string& why) {
              collector.add_cache_entry(bytes);
              if (!why.empty())
                collector.find({"", "", directory + "/" + path, damage::kCacheEntry, why});
            });
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failed) failed = std::current_exception();
      }
      slots.release(0);
    });
  }
  executor.stop();
  if (options.progress) options.progress(done, CacheFiles::kFolders);
  if (failed) std::rethrow_exception(failed);
}

}  // namespace batchfs
