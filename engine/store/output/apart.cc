#include "engine/store/output/apart.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <utility>

#include <sys/stat.h>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/strings.h"
#include "engine/store/output/output_store.h"
#include "engine/store/place.h"
#include "engine/store/uri.h"

namespace batchfs {

namespace {

/// A place under all names that it has: a URL, or a path and where that lies in its file system.
struct Resolved {
  std::string path;       // links and ".." resolved as far as it exists; or the URL
  std::string in_device;  // "device:path in its file system"; empty: not local, or not known
  /// Device and inode number of it and all folders above it that exist.
  std::set<std::pair<dev_t, ino_t>> above;
  std::optional<std::pair<dev_t, ino_t>> itself;  // nullopt: it does not exist
};

/// "a\040b" of mountinfo.
std::string unescaped(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_escape = text[i] == '\\' && i + 3 < text.size();
    plain += is_escape ? static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                           (text[i + 3] - '0'))
                       : text[i];
    if (is_escape) i += 3;
  }
  return plain;
}

bool is_at_or_below(const std::string& inner, const std::string& outer) {
  return inner == outer || inner.starts_with(outer.ends_with('/') ? outer : outer + "/");
}

/// A bind mount shows a folder of a file system under a second path: both lead to one place in the
/// file system. Source: proc_pid_mountinfo(5).
std::string place_in_device(const std::string& path) {
  std::ifstream mounts("/proc/self/mountinfo");
  std::string line, device, root, point;
  while (std::getline(mounts, line)) {
    const std::vector<std::string> fields = split(line, ' ');
    if (fields.size() < 5) continue;
    const std::string its_point = unescaped(fields[4]);
    // The later of two mounts at one point hides the other.
    if (!is_at_or_below(path, its_point) || its_point.size() < point.size()) continue;
    device = fields[2];
    root = unescaped(fields[3]);
    point = its_point;
  }
  if (device.empty()) return {};
  std::string rest = path.substr(point == "/" ? 0 : point.size());
  if (rest == "/") rest.clear();
  return device + ":" + (root == "/" ? rest : root + rest);
}

Resolved resolved(const std::string& named) {
  const std::string url = usual_place(named);
  const std::size_t colon = url.find("://");
  const std::string scheme = colon == std::string::npos ? "" : url.substr(0, colon);
  Resolved place;
  place.path = scheme == "file" ? path_of_file_url(url) : url;
  if (!scheme.empty() && scheme != "file") {
    place.path = shown_output(place.path);
    while (place.path.size() > 1 && place.path.back() == '/') place.path.pop_back();
    return place;
  }
  std::error_code failed;
  const auto path =
      std::filesystem::weakly_canonical(std::filesystem::absolute(place.path, failed), failed);
  if (!failed) place.path = path.string();
  while (place.path.size() > 1 && place.path.back() == '/') place.path.pop_back();
  place.in_device = place_in_device(place.path);
  for (std::filesystem::path at = place.path;; at = at.parent_path()) {
    struct stat info {};
    if (::stat(at.c_str(), &info) == 0) {
      place.above.emplace(info.st_dev, info.st_ino);
      if (at == place.path) place.itself.emplace(info.st_dev, info.st_ino);
    }
    if (at == at.parent_path()) break;
  }
  return place;
}

bool lies_in(const Resolved& inner, const Resolved& outer) {
  return is_at_or_below(inner.path, outer.path) ||
         (!inner.in_device.empty() && !outer.in_device.empty() &&
          is_at_or_below(inner.in_device, outer.in_device)) ||
         (outer.itself && inner.above.contains(*outer.itself));
}

}  // namespace

void check_outside(const std::vector<std::string>& stores, const std::string& place,
                   const std::string& what) {
  const Resolved to = resolved(place);
  for (const std::string& store : stores) {
    const Resolved from = resolved(store);
    if (!lies_in(to, from)) continue;
    throw Error(
        ErrorCode::invalid_argument,
        lies_in(from, to)
            ? fmt::format("the {} is the store itself; name another place", what)
            : fmt::format("the {} lies in the store that is read; name a place beside it", what),
        to.path);
  }
}

void check_apart(const std::vector<std::string>& stores, const std::string& place) {
  check_outside(stores, place);
  const Resolved to = resolved(place);
  for (const std::string& store : stores)
    if (lies_in(resolved(store), to))
      throw Error(ErrorCode::invalid_argument,
                  "the store that is read lies in the output; name a place beside it", to.path);
}

}  // namespace batchfs
