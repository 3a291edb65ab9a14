#include "engine/scan/sample_cache.h"
#include "engine/base/system_error.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include "engine/store/fingerprint.h"
#include "engine/view/describe/resolved.h"
#include "engine/view/samples/missing.h"

namespace batchfs {

namespace {

constexpr char kMagic[8] = {'B', 'F', 'S', 'M', 'P', 'L', '0', '1'};

/// Before the words: magic, length of the key, windows, checksum of key and words; then the key.
struct Header {
  char magic[8];
  std::uint64_t key_length;
  std::int64_t windows;
  std::uint64_t checksum;
};

std::uint64_t checksum(const std::string& key, std::span<const std::uint64_t> words) {
  return XXH3_64bits_withSeed(words.data(), words.size_bytes(),
                              XXH3_64bits(key.data(), key.size()));
}

}  // namespace

std::string sample_key(const Store& store, const std::string& snapshot_id, const View& view,
                       const Json& versions) {
  Json json = resolved_view(view);
  for (const char* key :
       {"name", "batch", "order", "epochs", "dtype", "normalize", "formats", "split"})
    json.erase(key);
  // Labels decide which starts are left.
  std::optional<Fingerprint> starts;
  const ViewScan scan = scan_of(view);
  for (std::size_t w = 0; w < scan.grid.counts.size(); ++w)
    if (const std::vector<std::int64_t>* list = scan.grid.restricted(w)) {
      if (!starts) starts.emplace();
      starts->add(std::to_string(w));
      starts->add(
          {reinterpret_cast<const char*>(list->data()), list->size() * sizeof(std::int64_t)});
    }
  if (starts) json["starts"] = starts->text();
  // However the user came to it.
  std::error_code error;
  const std::string place =
      store.is_local() ? std::filesystem::weakly_canonical(store.url(), error).string() : "";
  return Json{{"store", place.empty() ? store.url() : place},
              {"snapshot", snapshot_id},
              {"versions", versions},
              {"view", std::move(json)}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string user_cache_directory() {
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && xdg[0] == '/')
    return std::string(xdg) + "/batchfs";
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/')
    return std::string(home) + "/.cache/batchfs";
  return {};
}

SampleCache::SampleCache(std::string directory) : directory_(std::move(directory)) {}

std::string SampleCache::path_of(const std::string& key) const {
  const XXH128_hash_t hash = XXH3_128bits(key.data(), key.size());
  return fmt::format("{}/samples/{:016x}{:016x}.index", directory_, hash.high64, hash.low64);
}

std::shared_ptr<const SampleIndex> SampleCache::find(const std::string& key,
                                                     std::int64_t windows) const {
  if (directory_.empty()) return nullptr;
  std::ifstream file(path_of(key), std::ios::binary | std::ios::ate);
  if (!file) return nullptr;
  const auto size = static_cast<std::uint64_t>(file.tellg());
  const std::size_t words_size = static_cast<std::size_t>((windows + 63) / 64) * 8;
  Header header;
  if (size != sizeof header + key.size() + words_size) return nullptr;
  file.seekg(0);
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  if (!file || std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 ||
      header.key_length != key.size() || header.windows != windows)
    return nullptr;
  std::string stored_key(key.size(), '\0');
  std::vector<std::uint64_t> words(words_size / 8);
  file.read(stored_key.data(), static_cast<std::streamsize>(stored_key.size()));
  file.read(reinterpret_cast<char*>(words.data()), static_cast<std::streamsize>(words_size));
  if (!file || stored_key != key || checksum(key, words) != header.checksum) return nullptr;
  if (windows % 64 != 0 && (words.back() >> (windows % 64)) != 0) return nullptr;
  std::error_code ignored;
  std::filesystem::last_write_time(path_of(key), std::filesystem::file_time_type::clock::now(),
                                   ignored);
  return std::make_shared<const SampleIndex>(std::move(words), windows);
}

void SampleCache::remove_old() const {
  constexpr std::size_t kMaxEntries = 100;
  std::error_code error;
  std::vector<std::pair<std::filesystem::file_time_type, std::filesystem::path>> files;
  for (std::filesystem::directory_iterator it(directory_ + "/samples", error), end;
       !error && it != end; it.increment(error))
    files.emplace_back(it->last_write_time(error), it->path());
  std::sort(files.begin(), files.end());
  for (std::size_t i = 0; i + kMaxEntries < files.size(); ++i)
    std::filesystem::remove(files[i].second, error);
}

void SampleCache::keep(const std::string& key, const SampleIndex& index) const {
  if (directory_.empty()) return;
  const std::string path = path_of(key), part = fmt::format("{}.part-{}", path, ::getpid());
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (error) throw Error(ErrorCode::io, error.message(), path);
  const auto fail = [&] {
    const int cause = errno;
    std::filesystem::remove(part, error);
    return Error(cause == EACCES ? ErrorCode::access_denied : ErrorCode::io,
                 describe_system_error(cause), path);
  };
  remove_old();
  Header header;
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.key_length = key.size();
  header.windows = index.windows();
  header.checksum = checksum(key, index.words());
  std::ofstream file(part, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(&header), sizeof header);
  file.write(key.data(), static_cast<std::streamsize>(key.size()));
  file.write(reinterpret_cast<const char*>(index.words().data()),
             static_cast<std::streamsize>(index.words().size_bytes()));
  file.close();
  if (!file) throw fail();
  std::filesystem::rename(part, path, error);
  if (error) {
    errno = error.value();
    throw fail();
  }
}

}  // namespace batchfs
