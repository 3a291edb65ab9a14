#include "engine/store/virtual/virtual_places.h"

#include <algorithm>
#include <ctime>
#include <filesystem>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "engine/base/printable.h"
#include "engine/base/strings.h"
#include "engine/base/utf8.h"
#include "engine/store/object_versions.h"
#include "engine/store/place.h"
#include "engine/store/uri.h"

namespace batchfs {

namespace {

constexpr const char* kNotThere = " is not there";
constexpr std::string_view kContainer = "vcc://", kFile = "file://";

std::string with_slash(std::string text) {
  if (!text.ends_with('/')) text += '/';
  return text;
}

/// Without user, password and query, which may be secrets.
std::string shown_url(const std::string& url) {
  const std::size_t begin = url.find("://");
  if (begin == std::string::npos) return printable(url);
  std::string shown = url.substr(0, url.find_first_of("?#"));
  const std::size_t end = std::min(shown.find('/', begin + 3), shown.size());
  const std::size_t at = shown.rfind('@', end);
  if (at != std::string::npos && at > begin) shown.erase(begin + 3, at - begin - 2);
  return printable(shown);
}

/// Files of this machine have one URL each: decoded, without "..". Other URLs have their scheme in
/// lower case.
std::string normal_url(const std::string& written, bool encoded) {
  const std::string url = usual_url(written);
  if (!url.starts_with(kFile)) return url;
  std::string path = path_of_file_url(url);
  if (encoded) path = percent_decode(path.substr(0, path.find_first_of("?#")));
  return std::string(kFile) + std::filesystem::path(path).lexically_normal().string();
}

void check_prefix(const std::string& prefix) {
  const std::string authority = authority_of(prefix);
  const bool is_whole_scheme =
      authority.empty() || (authority.ends_with(":///") && !prefix.starts_with(kFile));
  if (is_whole_scheme || prefix == kFile || prefix == "file:///" ||
      prefix.find('*') != std::string::npos)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--virtual '{}' is not a prefix of files such as s3://bucket/folder/",
                            shown_url(prefix)));
}

/// Without '?' and fragment.
std::string query_of(std::string_view url) {
  url = url.substr(0, url.find('#'));
  const std::size_t mark = url.find('?');
  return mark == std::string_view::npos ? "" : std::string(url.substr(mark + 1));
}

bool is_on_this_machine(const std::string& url) {
  return url.starts_with(kFile) || url.find("://") == std::string::npos;
}

std::string_view without_quotes(std::string_view etag) {
  if (etag.size() >= 2 && etag.starts_with('"') && etag.ends_with('"'))
    etag = etag.substr(1, etag.size() - 2);
  return etag;
}

}  // namespace

std::string authority_of(const std::string& url) {
  const std::size_t begin = url.find("://");
  if (begin == std::string::npos) return {};
  const std::size_t end = url.find_first_of("/?#", begin + 3);
  return url.substr(0, end) + "/";
}

std::string place_of_store(const Store& store) {
  std::string url = store.url();
  if (url.find("://") == std::string::npos)
    url = std::string(kFile) + std::filesystem::absolute(url).lexically_normal().string();
  return with_slash(std::move(url));
}

VirtualPlaces::VirtualPlaces(std::shared_ptr<Store> own, const VirtualOptions& options,
                             Manner manner, Open open)
    : manner_(std::move(manner)), open_(std::move(open)), checks_(options.checks) {
  for (const std::string& text : options.places) {
    const std::size_t equals = text.find('=');
    const std::string named = with_slash(text.substr(0, equals));
    const bool is_path = named.starts_with('/');
    const std::string prefix =
        is_path ? normal_url(std::string(kFile) + named, false) : normal_url(named, true);
    check_prefix(prefix);
    const std::string url =
        equals == std::string::npos ? prefix : usual_place(text.substr(equals + 1));
    if (url.empty())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("--virtual '{}' names nothing after '='", shown_url(text)));
    are_local_ = are_local_ && is_on_this_machine(url);
    places_.push_back({prefix, url, nullptr});
  }
  places_.push_back({place_of_store(*own), "", own});
  std::stable_sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) {
    return a.prefix.size() > b.prefix.size();
  });
}

/// "vcc://name/rest" is the container's prefix and rest.
std::string VirtualPlaces::absolute(std::string_view location) const {
  if (!location.starts_with(kContainer)) return std::string(location);
  const std::string_view relative = location.substr(kContainer.size());
  const std::size_t slash = std::min(relative.find('/'), relative.size());
  for (const auto& [name, url] : manner_.containers)
    if (!name.empty() && name == relative.substr(0, slash))
      return with_slash(url) + std::string(relative.substr(std::min(slash + 1, relative.size())));
  throw Error(ErrorCode::corrupt,
              fmt::format("the chunk lies in the container '{}', which the repository's "
                          "configuration does not have",
                          printable(std::string(relative.substr(0, slash)))));
}

Error VirtualPlaces::denied(const std::string& location) const {
  std::string prefix = authority_of(location);
  if (location.starts_with(kFile)) prefix = location.substr(0, location.rfind('/') + 1);
  for (const auto& [name, url] : manner_.containers)
    if (location.starts_with(with_slash(url))) prefix = with_slash(url);
  return Error(ErrorCode::access_denied,
               fmt::format("the chunk lies outside of the {}, in {}; allow reading there "
                           "with --virtual {}",
                           manner_.whole, shown_url(location), shown_url(prefix)));
}

VirtualPlaces::File VirtualPlaces::find(std::string_view text) {
  const bool has_control = std::any_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
  const std::string location =
      has_control || !is_utf8(text) ? "" : normal_url(absolute(text), manner_.encoded);
  if (location.find("://") == std::string::npos)
    throw Error(ErrorCode::corrupt,
                fmt::format("the {} names a file '{}', which is not a URL", manner_.list,
                            printable(std::string(text.substr(0, 200)))));
  const bool is_file = location.starts_with(kFile);
  for (Place& place : places_) {
    if (!location.starts_with(place.prefix)) continue;
    std::string key = location.substr(place.prefix.size());
    const bool is_web = location.starts_with("http");
    std::string query;
    if (!is_file && (manner_.encoded || is_web)) {
      if (is_web) query = query_of(key);
      key = percent_decode(key.substr(0, key.find_first_of("?#")));
    }
    if (!is_key(key))
      throw Error(ErrorCode::not_supported,
                  fmt::format("the chunk lies in {}, whose path batchfs does not read",
                              shown_url(location)));
    const std::lock_guard lock(mutex_);
    if (place.store == nullptr) place.store = open_(place.url);
    if (!query.empty() && !manner_.encoded) {
      if (manner_.queries == nullptr)
        throw Error(
            ErrorCode::not_supported,
            fmt::format("the chunk lies in {}, whose address has a query", shown_url(location)));
      key = manner_.queries->key(place.store->url(), key, query);
    }
    return {place.store, std::move(key), shown_url(location)};
  }
  throw denied(location);
}

std::optional<std::uint64_t> VirtualPlaces::state(std::string_view location) {
  constexpr std::size_t kMaxStates = 100'000;
  const File file = find(location);
  if (file.store->is_local()) return file.store->state(file.key);
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = states_.find(location); known != states_.end()) return known->second;
  }
  const std::optional<std::uint64_t> state = file.store->state(file.key);
  const std::lock_guard lock(mutex_);
  if (states_.size() == kMaxStates) states_.clear();
  if (state && *state != 0) states_.emplace(location, *state);
  return state;
}

void VirtualPlaces::check(const VirtualFile& file, const std::string& shown,
                          const Store::VersionedRead& read) const {
  if (!checks_) return;
  constexpr const char* kAnyway = "--virtual-checks off reads it anyway";
  if (!file.etag.empty()) {
    const bool is_known = !read.version.empty() && !read.version.starts_with("modified ");
    if (!is_known)
      throw Error(ErrorCode::stale,
                  fmt::format("whether {} has changed since it was referred to cannot be told: "
                              "there is no ETag to compare; {}",
                              shown, kAnyway));
    if (without_quotes(read.version) != without_quotes(file.etag))
      throw Error(ErrorCode::stale,
                  fmt::format("{} has changed since it was referred to: it has another ETag; {}",
                              shown, kAnyway));
  }
  if (file.modified != 0 && read.modified && *read.modified > file.modified)
    throw Error(ErrorCode::stale,
                fmt::format("{} has changed since it was referred to: on {:%Y-%m-%d %H:%M:%S} UTC; "
                            "{}",
                            shown, fmt::gmtime(static_cast<std::time_t>(*read.modified)), kAnyway));
}

void VirtualPlaces::read_async(const VirtualFile& file, ByteRange range, ReadDone done,
                               bool past_caches) {
  const File found = find(file.location);
  // The strings that `file` views may not outlive this call.
  const auto kept =
      std::make_shared<const std::pair<std::string, std::uint32_t>>(file.etag, file.modified);
  found.store->read_version_async(
      found.key, range, past_caches ? kNoVersion : "",
      [this, kept, range, shown = found.shown, done = std::move(done)](auto got) {
        if (auto* error = std::get_if<std::exception_ptr>(&got)) return done(std::move(*error));
        auto& read = std::get<Store::VersionedRead>(got);
        try {
          if (!read.bytes) throw gone(shown);
          check({{}, kept->first, kept->second}, shown, read);
          if (read.bytes->size() != range.length) throw too_short();
        } catch (...) {
          return done(std::current_exception());
        }
        done(std::move(read.bytes));
      });
}

void VirtualPlaces::stop() {
  std::vector<std::shared_ptr<Store>> opened;
  {
    const std::lock_guard lock(mutex_);
    for (const Place& place : places_)
      if (place.store != nullptr) opened.push_back(place.store);
  }
  for (const auto& store : opened) store->stop();
}

Error VirtualPlaces::gone(const std::string& shown) {
  return Error(ErrorCode::corrupt, shown + ", which the chunk lies in," + kNotThere);
}

bool VirtualPlaces::is_gone(const Error& error) { return error.why().ends_with(kNotThere); }

Error VirtualPlaces::too_short() const {
  return Error(
      ErrorCode::corrupt,
      fmt::format("the file that the chunk lies in is shorter than the {} says", manner_.list));
}

}  // namespace batchfs
