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

/// For sorting: "10.2" after "9.0".
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

void sort_lists(VerifyReport& report) {
  std::sort(report.findings.begin(), report.findings.end(), [](const Finding& a, const Finding& b) {
    return std::tuple(a.array, chunk_numbers(a.chunk), a.key, a.why) <
           std::tuple(b.array, chunk_numbers(b.chunk), b.key, b.why);
  });
  const auto by_key = [](const VerifyNote& a, const VerifyNote& b) { return a.key < b.key; };
  std::sort(report.notes.begin(), report.notes.end(), by_key);
  std::sort(report.not_checked.begin(), report.not_checked.end(), by_key);
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

void VerifyCollector::add_array(std::uint64_t selected, std::uint64_t known) {
  const std::lock_guard lock(mutex_);
  ++report_.arrays;
  report_.missing_chunks =
      saturating_add(report_.missing_chunks, selected > known ? selected - known : 0);
  report_.selected_chunks = saturating_add(report_.selected_chunks, selected);
  report_.known_chunks = saturating_add(report_.known_chunks, known);
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
  sort_lists(report);
  return report;
}

VerifyReport merge_reports(const std::vector<VerifyReport>& reports, std::size_t max_listed) {
  VerifyReport merged;
  for (const VerifyReport& report : reports) {
    if (&report == &reports.front()) {
      merged.arrays = report.arrays;
      merged.not_checked = report.not_checked;
      merged.selected_chunks = report.selected_chunks;
    }
    merged.objects += report.objects;
    merged.chunks += report.chunks;
    merged.stored_bytes += report.stored_bytes;
    merged.decoded_bytes += report.decoded_bytes;
    merged.known_chunks = saturating_add(merged.known_chunks, report.known_chunks);
    merged.problems += report.problems;
    merged.findings.insert(merged.findings.end(), report.findings.begin(), report.findings.end());
    merged.note_count += report.note_count;
    merged.notes.insert(merged.notes.end(), report.notes.begin(), report.notes.end());
    merged.interrupted = merged.interrupted || report.interrupted;
  }
  merged.missing_chunks = merged.selected_chunks > merged.known_chunks
                              ? merged.selected_chunks - merged.known_chunks
                              : 0;
  sort_lists(merged);
  const auto repeated = std::unique(merged.findings.begin(), merged.findings.end());
  merged.problems -= static_cast<std::uint64_t>(merged.findings.end() - repeated);
  merged.findings.erase(repeated, merged.findings.end());
  if (merged.findings.size() > max_listed) merged.findings.resize(max_listed);
  if (merged.notes.size() > max_listed) merged.notes.resize(max_listed);
  return merged;
}

}  // namespace batchfs
