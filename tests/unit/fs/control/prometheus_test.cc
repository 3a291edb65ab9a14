#include "fs/control/prometheus.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace prometheus_test {

TEST(Prometheus, Counters) {
  PrometheusText text;
  text.counter("errors", "Reads that failed", 3);
  EXPECT_EQ(text.text(),
            "# HELP batchfs_errors_total Reads that failed\n"
            "# TYPE batchfs_errors_total counter\n"
            "batchfs_errors_total 3\n");
}

TEST(Prometheus, LabelsMayHoldAnything) {
  PrometheusText text;
  const PrometheusText::Sample samples[] = {{{{"view", "a\"b\\c\nd"}, {"rank", "0"}}, 1e12},
                                            {{{"view", "e"}, {"rank", "1"}}, 0.5}};
  text.counter("stream_batches", "of\na reader", samples);
  EXPECT_EQ(text.text(),
            "# HELP batchfs_stream_batches_total of\\na reader\n"
            "# TYPE batchfs_stream_batches_total counter\n"
            "batchfs_stream_batches_total{view=\"a\\\"b\\\\c\\nd\",rank=\"0\"} 1000000000000\n"
            "batchfs_stream_batches_total{view=\"e\",rank=\"1\"} 0.5\n");
}

TEST(Prometheus, Histograms) {
  LatencyHistogram waits;
  waits.add(50'000);
  waits.add(2'000'000);
  waits.add(40'000'000'000);
  PrometheusText text;
  text.histogram("get_batch_seconds", "Waits", waits);
  const std::string& t = text.text();
  EXPECT_NE(t.find("# TYPE batchfs_get_batch_seconds histogram\n"
                   "batchfs_get_batch_seconds_bucket{le=\"0.0001\"} 1\n"),
            std::string::npos)
      << t;
  EXPECT_NE(t.find("_bucket{le=\"0.001\"} 1\n"), std::string::npos);
  EXPECT_NE(t.find("_bucket{le=\"0.003\"} 2\n"), std::string::npos) << t;
  EXPECT_NE(t.find("_bucket{le=\"30\"} 2\n"), std::string::npos);
  EXPECT_NE(t.find("_bucket{le=\"+Inf\"} 3\nbatchfs_get_batch_seconds_sum "
                   "40.00205\nbatchfs_get_batch_seconds_count 3\n"),
            std::string::npos)
      << t;
}

TEST(Prometheus, UnitsComeLast) {
  EXPECT_EQ(prometheus_name("bytes_fetched"), "fetched_bytes");
  EXPECT_EQ(prometheus_name("disk_cache_bytes_read"), "disk_cache_read_bytes");
  EXPECT_EQ(prometheus_name("errors"), "errors");
  EXPECT_EQ(prometheus_name("chunk_cache_bytes"), "chunk_cache_bytes");
}

}  // namespace prometheus_test
}  // namespace batchfs
