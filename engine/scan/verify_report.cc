#include "engine/scan/verify_report.h"

#include <algorithm>
#include <charconv>
#include <tuple>
#include <utility>

namespace batchfs {

namespace {

/// Sums of hostile grids (2^62 chunks each) must not wrap.
std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/// "10.2" behind "9.0".
std::vector<std::uint64_t> chunk_numbers(const std::string& chunk) {
  std::vector<std::uint64_t> numbers;
  for (std::size_t begin = 0; begin < chunk.size();) {
    const std::size_t end = std::min(chunk.find('.', begin), chunk.size());
    std::uint64_t number = 0;
    std::from_chars(chunk.data() + begin, chunk.data() + end, number);
    numbers.push_back(number);
    begin = end + 1;
  }
  return numbers;
}

}  // namespace

void VerifyCollector::find(Finding finding) {
  const std::lock_guard lock(mutex_);
  ++report_.problems;
  if (report_.findings.size() < max_listed_) report_.findings.push_back(std::move(finding));
}

void VerifyCollector::note(std::string key, std::string why) {
  const std::lock_guard lock(mutex_);
  ++report_.note_count;
  if (report_.notes.size() < max_listed_) report_.notes.push_back({std::move(key), std::move(why)});
}

void VerifyCollector::not_checked(std::string array, std::string why) {
  const std::lock_guard lock(mutex_);
  report_.not_checked.push_back({std::move(array), std::move(why)});
}

void VerifyCollector::add_object(std::uint64_t stored_bytes) {
  const std::lock_guard lock(mutex_);
  ++report_.objects;
  report_.stored_bytes += stored_bytes;
}

void VerifyCollector::add_bytes(std::uint64_t stored_bytes) {
  const std::lock_guard lock(mutex_);
  report_.stored_bytes += stored_bytes;
}

void VerifyCollector::add_chunks(std::uint64_t chunks, std::uint64_t decoded_bytes) {
  const std::lock_guard lock(mutex_);
  report_.chunks += chunks;
  report_.decoded_bytes += decoded_bytes;
}

void VerifyCollector::add_array(std::uint64_t missing_chunks) {
  const std::lock_guard lock(mutex_);
  ++report_.arrays;
  report_.missing_chunks = saturating_add(report_.missing_chunks, missing_chunks);
}

void VerifyCollector::add_cache_entry(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  ++report_.cache_entries;
  report_.cache_bytes += bytes;
}

void VerifyCollector::interrupt() {
  const std::lock_guard lock(mutex_);
  report_.interrupted = true;
}

VerifyReport VerifyCollector::report() const {
  VerifyReport report;
  {
    const std::lock_guard lock(mutex_);
    report = report_;
  }
  std::sort(report.findings.begin(), report.findings.end(), [](const Finding& a, const Finding& b) {
    return std::tuple(a.array, chunk_numbers(a.chunk), a.key, a.why) <
           std::tuple(b.array, chunk_numbers(b.chunk), b.key, b.why);
  });
  const auto by_key = [](const VerifyNote& a, const VerifyNote& b) { return a.key < b.key; };
  std::sort(report.notes.begin(), report.notes.end(), by_key);
  std::sort(report.not_checked.begin(), report.not_checked.end(), by_key);
  return report;
}

}  // namespace batchfs
