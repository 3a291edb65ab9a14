#include "engine/write/prediction/sample_parts.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <random>

#include <fmt/format.h>
#include <unistd.h>

#include "engine/base/json_text.h"
#include "engine/zarr/node_path.h"

namespace batchfs {

namespace {

constexpr std::size_t kMaxHeaderBytes = 64 << 20;

std::string folder_of(const std::string& array) { return fmt::format(".batchfs/parts/{}", array); }

std::string folder_of(const std::string& array, std::int64_t number) {
  return fmt::format("{}/{}", folder_of(array), number);
}

std::string unique_name() {
  static std::atomic<std::uint64_t> last{0};
  return std::to_string(++last);
}

}  // namespace

SampleParts::SampleParts(const PredictionFolder& folder, std::string run, int rank)
    : folder_(folder),
      run_(std::move(run)),
      rank_(rank),
      // Processes of several machines may have one number.
      token_(fmt::format("{}-{:08x}", ::getpid(), std::random_device{}())) {}

void SampleParts::put(const std::string& array, std::int64_t number, const ObjectSamples& samples) {
  std::vector<std::int64_t> numbers;
  std::vector<std::uint64_t> bytes;
  std::vector<std::span<const std::byte>> data(1);
  for (const auto& [sample, values] : samples) {
    numbers.push_back(sample);
    bytes.push_back(values.size());
    data.push_back(values.span());
  }
  const std::string text =
      json_text({{"run", run_}, {"samples", numbers}, {"bytes", bytes}}, -1) + "\n";
  data.front() = std::as_bytes(std::span(text));
  folder_.store().put(
      fmt::format("{}/{}-{}-{}", folder_of(array, number), rank_, token_, unique_name()), data);
}

std::vector<std::int64_t> SampleParts::numbers(const std::string& array) const {
  std::vector<std::int64_t> numbers;
  for (const std::string& name : folder_.names(folder_of(array))) {
    std::int64_t number = -1;
    const char* const end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data(), end, number);
    if (error == std::errc() && stop == end && number >= 0 && std::to_string(number) == name)
      numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::set<std::int64_t> SampleParts::samples(const std::string& array, std::int64_t number) const {
  std::set<std::int64_t> samples;
  const std::string folder = folder_of(array, number);
  for (const std::string& name : folder_.names(folder)) {
    const Header found = header(join_path(folder, name));
    samples.insert(found.samples.begin(), found.samples.end());
  }
  return samples;
}

ObjectSamples SampleParts::read(
    const std::string& array, std::int64_t number,
    const std::function<std::uint64_t(std::int64_t sample)>& bytes_of) const {
  ObjectSamples samples;
  const std::string folder = folder_of(array, number);
  for (const std::string& name : folder_.names(folder)) {
    const std::string key = join_path(folder, name);
    const Header found = header(key);
    std::uint64_t offset = found.offset;
    for (std::size_t i = 0; i < found.samples.size(); ++i) {
      if (found.bytes[i] != bytes_of(found.samples[i])) refuse(key);
      Buffer values(found.bytes[i]);
      folder_.store().read_part(key, offset, values.span());
      offset += found.bytes[i];
      samples[found.samples[i]] = std::move(values);
    }
  }
  return samples;
}

void SampleParts::discard(const std::string& array, std::int64_t number) const {
  const std::string folder = folder_of(array, number);
  for (const std::string& name : folder_.names(folder)) folder_.remove(join_path(folder, name));
  folder_.remove_folder(folder);
}

std::unique_ptr<OutputStore::Lock> SampleParts::lock(const std::string& array,
                                                     std::int64_t number) const {
  return folder_.wait_for_lock(fmt::format("parts/{}/{}.lock", array, number));
}

SampleParts::Header SampleParts::header(const std::string& key) const {
  try {
    const auto line = folder_.first_line(key, kMaxHeaderBytes);
    if (!line) return {};  // another process has put the object meanwhile
    const Json json = parse_json(line->text, key);
    const JsonRef root(json, key);
    if (root.at("run").string() != run_) refuse(key);
    Header header{{}, {}, line->text.size() + 1};
    std::uint64_t left = line->file_size - header.offset;
    for (const JsonRef& sample : root.at("samples").elements())
      header.samples.push_back(sample.integer());
    for (const JsonRef& bytes : root.at("bytes").elements()) {
      header.bytes.push_back(static_cast<std::uint64_t>(bytes.integer(0)));
      if (header.bytes.back() > left) refuse(key);
      left -= header.bytes.back();
    }
    if (left != 0 || header.bytes.size() != header.samples.size()) refuse(key);
    return header;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::io || error.code() == ErrorCode::access_denied) throw;
    refuse(key);
  }
}

void SampleParts::refuse(const std::string& key) const {
  throw Error(ErrorCode::corrupt,
              fmt::format("the file '{}' is not of this run, or it is damaged; remove it, and "
                          "write its samples again",
                          folder_.path(key)));
}

}  // namespace batchfs
