#include "tools/monitor/wait_advice.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "tools/cli/json_fields.h"
#include "tools/cli/text.h"

namespace batchfs {

namespace {

constexpr double kHardly = 0.02;   // share of the time that is not worth mentioning
constexpr double kDominant = 0.5;  // share of the waiting
constexpr std::size_t kWaitBins = 2000;
constexpr double kAllThreads =
    0.85;  // share of the threads that counts as all: between two chunks a thread does other work

/// Computes what the mount did while readers waited.
void explain_waits(const Timeline& timeline, WaitFacts& facts) {
  std::vector<Timeline::Span> waits;
  for (const Timeline::Reader& reader : timeline.readers)
    for (const Timeline::Get& get : reader.gets) waits.push_back(get.wait);
  const auto waiting = under_way(waits, timeline.seconds, kWaitBins);
  const auto decoding = under_way(timeline.decodes, timeline.seconds, kWaitBins);
  const auto fetching = under_way(timeline.fetches, timeline.seconds, kWaitBins);
  const double all_threads =
      kAllThreads * static_cast<double>(std::max<std::int64_t>(1, facts.threads));
  double sum = 0;
  for (std::size_t i = 0; i < kWaitBins; ++i) {
    sum += waiting[i];
    facts.decoding += waiting[i] * decoding[i];
    (decoding[i] >= all_threads ? facts.decode_bound
     : decoding[i] >= 0.5       ? facts.decode_few
     : fetching[i] >= 0.5       ? facts.fetch_bound
                                : facts.idle) += waiting[i];
  }
  if (sum <= 0) return;
  for (double* share :
       {&facts.decoding, &facts.decode_bound, &facts.decode_few, &facts.fetch_bound, &facts.idle})
    *share /= sum;
}

std::string decode_advice(const WaitFacts& f) {
  std::string text =
      fmt::format("Readers waited {} of their time, mostly for decoding: all {} threads were busy.",
                  percent_text(f.wait_share), f.threads);
  if (f.threads < f.processors) {
    const double needed = static_cast<double>(f.threads) / std::max(0.1, 1 - f.wait_share);
    const std::int64_t more =
        std::min(f.processors, static_cast<std::int64_t>(std::ceil(needed))) - f.threads;
    text += fmt::format(" Use {} more thread{} (--threads {}).", std::max<std::int64_t>(1, more),
                        more > 1 ? "s" : "", f.threads + std::max<std::int64_t>(1, more));
  }
  if (f.decode_amplification > 1.5)
    text += fmt::format(
        " {:.1f} bytes were decoded for each byte used: the order \"block\", or windows and "
        "strides "
        "that follow the chunks, decode fewer; `batchfs plan` compares.",
        f.decode_amplification);
  else if (f.threads >= f.processors)
    text +=
        " A machine with more processors, a codec that is faster to decode (lz4, zstd), or "
        "decoding on a GPU "
        "(batchfs.open(..., device=\"cuda\")) helps.";
  return text;
}

std::string fetch_advice(const WaitFacts& f) {
  std::string text = fmt::format("Readers waited {} of their time, mostly for the store.",
                                 percent_text(f.wait_share));
  if (f.fetch_amplification > 1.5)
    text += fmt::format(
        " {:.1f} bytes were fetched for each byte used: the order \"block\", or windows that "
        "follow "
        "the chunks, fetch fewer.",
        f.fetch_amplification);
  if (f.remote && !f.disk_cache)
    text += " With --cache-dir the next epochs are read from this machine's disk.";
  if (f.memory_share > 0.9) text += " A larger --memory lets more be fetched ahead.";
  if (f.throttled > 0)
    text += fmt::format(" The store rejected {} requests because there were too many.",
                        format_count(f.throttled));
  return text;
}

}  // namespace

WaitFacts wait_facts(const Timeline& timeline, const Json& status, std::int64_t processors) {
  WaitFacts f;
  double waited = 0, first = 0, time = 0;
  for (const Timeline::Reader& reader : timeline.readers) {
    f.gets += static_cast<std::int64_t>(reader.gets.size());
    for (const Timeline::Get& get : reader.gets) {
      waited += get.wait.end - get.wait.begin;
      time += get.wait.end - get.wait.begin + std::max(0.0, get.used_until - get.wait.end);
    }
    if (!reader.gets.empty() && reader.gets[0].epoch == 0 && reader.gets[0].batch < reader.world)
      first += reader.gets[0].wait.end - reader.gets[0].wait.begin;
  }
  f.wait_share = time > 0 ? waited / time : 0;
  f.first_share = waited > 0 ? first / waited : 0;
  f.processors = processors;
  f.readers = static_cast<std::int64_t>(timeline.readers.size());
  if (status.is_object()) {
    f.threads = static_cast<std::int64_t>(count_field(status, "threads"));
    const double delivered = number_field(status, "bytes_delivered");
    if (delivered > 0) {
      f.decode_amplification = number_field(status, "bytes_decoded") / delivered;
      f.fetch_amplification = number_field(status, "bytes_fetched") / delivered;
    }
    f.evictions = count_field(status, "chunk_cache_evictions");
    f.chunks = count_field(status, "chunks_decoded");
    f.memory_share =
        number_field(status, "memory_used") / std::max(1.0, number_field(status, "memory_budget"));
    f.errors = count_field(status, "errors");
    const auto passthrough = status.find("passthrough");
    f.passthrough =
        passthrough == status.end() || !passthrough->is_boolean() || passthrough->get<bool>();
    const auto store = status.find("store");
    if (store != status.end() && store->is_object()) {
      f.remote = true;
      f.disk_cache = store->contains("disk_cache_hits");
      f.throttled = count_field(*store, "throttled");
      f.retries = count_field(*store, "retries");
    }
    const auto streams = status.find("streams");
    if (streams != status.end() && streams->is_array())
      for (const Json& stream : *streams)
        if (stream.is_object() && number_field(stream, "batches") > 4 &&
            number_field(stream, "prefetch") == 0)
          ++f.jumping;
  }
  explain_waits(timeline, f);
  return f;
}

std::vector<std::string> wait_advice(const WaitFacts& f) {
  std::vector<std::string> advice;
  if (f.gets == 0) {
    advice.emplace_back(
        "No batch was read in the last minute. Make the report while the training runs.");
  } else if (f.wait_share < kHardly) {
    advice.push_back(fmt::format(
        "Readers waited {:.1f} % of their time: batches were ready when they were requested. The "
        "training sets the pace.",
        100 * f.wait_share));
  } else if (f.first_share > 0.8) {
    advice.emplace_back(
        "Nearly all waiting was for the first batch, before anything could be prefetched.");
  } else if (f.jumping > 0) {
    advice.push_back(fmt::format(
        "{} of {} readers read{} batches out of order, so that none could be prefetched. Read "
        "the batches of an epoch in order: the view shuffles.",
        f.jumping, std::max(f.readers, f.jumping), f.jumping == 1 ? "s" : ""));
  } else if (f.decode_bound >= kDominant ||
             (f.decode_bound >= f.fetch_bound && f.decode_bound >= f.decode_few &&
              f.decode_bound >= f.idle)) {
    advice.push_back(decode_advice(f));
  } else if (f.fetch_bound >= f.decode_few && f.fetch_bound >= f.idle) {
    advice.push_back(fetch_advice(f));
  } else if (f.decode_few >= f.idle) {
    advice.push_back(fmt::format(
        "Readers waited {} of their time while {:.1f} of {} threads decoded: a batch has few "
        "chunks, "
        "and too few batches were prefetched. A larger --memory prefetches more; smaller chunks "
        "decode in parallel.",
        percent_text(f.wait_share), f.decoding, f.threads));
  } else {
    advice.push_back(fmt::format(
        "Readers waited {} of their time while little was fetched or decoded: batches were being "
        "laid out, or other programs kept the machine busy.",
        percent_text(f.wait_share)));
  }
  if (f.evictions > f.chunks / 4 && f.chunks > 0 && f.decode_amplification > 1.5)
    advice.push_back(
        fmt::format("{} of {} decoded chunks were dropped for lack of memory and may have been "
                    "decoded again. A "
                    "larger --memory, or the order \"block\", keeps them until they are used.",
                    format_count(f.evictions), format_count(f.chunks)));
  if (f.errors > 0)
    advice.push_back(fmt::format("{} read{} failed; .batchfs/log says of which chunk and why.",
                                 format_count(f.errors), f.errors == 1 ? "" : "s"));
  if (f.retries > 100)
    advice.push_back(fmt::format(
        "{} requests to the store were repeated: the network or the store is unreliable.",
        format_count(f.retries)));
  if (f.gets > 0 && !f.passthrough)
    advice.emplace_back(
        "Batches are read through this program, not by the kernel alone: `batchfs doctor` says "
        "what is missing for passthrough.");
  return advice;
}

}  // namespace batchfs
