#pragma once
// Metrics as Prometheus reads them: text exposition format 0.0.4.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/telemetry/latency_histogram.h"

namespace batchfs {

/// Writes families of metrics, one after the other. A name is the part after "batchfs_", with its
/// unit: the caller uses base units, seconds and bytes.
class PrometheusText {
 public:
  using Labels = std::vector<std::pair<std::string_view, std::string>>;
  struct Sample {
    Labels labels;
    double value;
  };

  /// "_total" is added to the name.
  void counter(std::string_view name, std::string_view help, double value);
  void counter(std::string_view name, std::string_view help, std::span<const Sample> samples);
  void gauge(std::string_view name, std::string_view help, double value);
  /// In seconds, with buckets from 0.1 ms to 30 s.
  void histogram(std::string_view name, std::string_view help, const LatencyHistogram& waits);

  const std::string& text() const { return text_; }

 private:
  void begin(const std::string& name, std::string_view help, std::string_view type);
  void sample(const std::string& name, const Labels& labels, double value);

  std::string text_;
};

/// A counter's name with the unit where Prometheus wants it: "bytes_fetched" is "fetched_bytes".
std::string prometheus_name(std::string_view counter);

}  // namespace batchfs
