#include "tools/monitor/status_text.h"

#include <gmock/gmock.h>

#include "engine/base/strings.h"
#include "tools/cli/text_layout.h"

namespace batchfs {
namespace status_text_test {

using testing::HasSubstr;
using testing::Not;

Json busy() {
  return Json::parse(R"({"pid": 42, "passthrough": true, "uptime_seconds": 3723, "threads": 8,
    "bytes_fetched": 1288490188, "bytes_decoded": 5368709120, "chunks_decoded": 12345,
    "chunk_cache_hits": 17, "batches_assembled": 980, "batches_opened": 1000,
    "bytes_delivered": 2147483648, "memory_budget": 9223372036854771712, "memory_used": 1048576,
    "cgroup": {"memory_used": 1048576, "memory_limit": 9223372036854771712}, "errors": 2,
    "wait_seconds": {"count": 1000, "sum": 12.3, "p50": 0.0024, "p99": 0.031, "max": 1},
    "store": {"requests": 4321, "retries": 3, "failures": 0},
    "handoff": {"readers": 1, "batches": 5, "leases": 2, "memory_bytes": 4096},
    "streams": [
      {"view": "train", "format": "npy", "rank": 0, "world": 4, "epoch": 1, "batch": 12,
       "epoch_batches": 100, "prefetch": 4, "batches": 112, "batches_per_second": 12.5,
       "bytes_per_second": 1073741824, "wait_share": 0.25, "idle_seconds": 0.5, "failures": 0,
       "wait_seconds": {"p50": 0.002, "p99": 0.03}},
      {"view": "train", "format": "npy", "rank": 1, "world": 4, "idle_seconds": 4000}]})");
}

TEST(StatusText, HasALineForEachStreamAndNoSizeThatStandsForNoLimit) {
  const std::string text =
      status_text(busy(), {{"store", "s3://bucket/era5.zarr"}}, "/mnt/era5", 100);
  for (const char* part :
       {"/mnt/era5  s3://bucket/era5.zarr\n", "up       1:02:03, pid 42, 8 threads, passthrough\n",
        "store    1.2 GB fetched, 4,321 requests, 3 repeated\n", "memory   1.0 MB no limit",
        "hand-off 1 reader, 5 batches, 2 held now, 4.0 KB of them\n",
        "errors   2; `batchfs log` says which\n", "1,000 batches asked for, median 2.4 ms"})
    EXPECT_THAT(text, HasSubstr(part));
  EXPECT_THAT(text, Not(HasSubstr("EB")));
  EXPECT_THAT(text, HasSubstr("train (npy)  0/4   1      12/100  12.5     1.0 GB/s  25 %"));
  EXPECT_THAT(text, HasSubstr("train (npy)  1/4"));
}

TEST(StatusText, ShowsSharedCaches) {
  EXPECT_THAT(status_text(busy(), {}, "/mnt", 100), Not(HasSubstr("caches ")));
  Json status = busy();
  status["store"].update({{"via_requests", 900},
                          {"via_bytes", 1048576},
                          {"via_hits", 700},
                          {"via_misses", 0},
                          {"via_fallbacks", 3},
                          {"via_failures", 2}});
  EXPECT_THAT(status_text(status, {}, "/mnt", 100),
              HasSubstr("caches   1.0 MB received, 900 requests, 700 hits, 3 asked of the store "
                        "instead, 2 failed\n"));
}

TEST(StatusText, FitsTheColumns) {
  for (const std::size_t columns : {70, 80, 120})
    for (const std::string& line : split(status_text(busy(), {}, "/mnt", columns), '\n'))
      EXPECT_LE(text_columns(line), columns) << line;
}

TEST(StatusText, OfTextsThatMakeNoSense) {
  for (const char* odd : {"{}", "[]", "3", R"({"streams": [1, {}], "handoff": {"gpus": [7, {}]}})"})
    EXPECT_THAT(status_text(Json::parse(odd), Json::parse(odd), "/mnt", 80), HasSubstr("/mnt\n"));
  EXPECT_THAT(status_text(Json::object(), Json::object(), "/mnt", 80),
              HasSubstr("No batch was read yet.\n"));
}

}  // namespace status_text_test
}  // namespace batchfs
