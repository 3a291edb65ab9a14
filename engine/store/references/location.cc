#include "engine/store/references/location.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/base/strings.h"
#include "engine/store/place.h"
#include "engine/store/uri.h"
#include "engine/store/virtual/virtual_places.h"

namespace batchfs::references {

namespace {

constexpr std::array kSchemes = {"file", "http", "https", "s3",   "s3a",  "gs",
                                 "gcs",  "az",   "azure", "abfs", "abfss"};
constexpr std::size_t kMostFolders = 64;

bool is_web(std::string_view scheme) { return scheme == "http" || scheme == "https"; }

std::string normal_path(const std::string& path) {
  return std::filesystem::path(path).lexically_normal().string();
}

/// Schemes of one service have one name.
std::string_view usual(std::string_view scheme) {
  if (scheme == "s3a") return "s3";
  if (scheme == "gcs") return "gs";
  return scheme;
}

}  // namespace

bool is_relative(std::string_view named) {
  const std::string file = usual_url(std::string(named));
  return !file.starts_with('/') && file.find("://") == std::string::npos;
}

std::string absolute_location(std::string_view named, const std::string& place) {
  const std::string file = usual_url(std::string(named));
  const auto refuse = [&file](const std::string& why) {
    // The text after '?' may be a secret.
    const std::string shown = file.substr(0, std::min<std::size_t>(file.find('?'), 200));
    return Error(ErrorCode::not_supported,
                 fmt::format("the chunk lies in '{}', {}", printable(shown), why));
  };
  const std::size_t colon = file.find("://");
  if (file.substr(0, colon).find("::") != std::string::npos)
    throw refuse("a chain of file systems, which batchfs does not read");
  if (file.starts_with("data:")) throw refuse("a data URL, which batchfs does not read");
  if (colon != std::string::npos) {
    const std::string scheme = file.substr(0, colon);
    if (std::find(kSchemes.begin(), kSchemes.end(), scheme) == kSchemes.end())
      throw refuse("a file system that batchfs does not know");
    return std::string(usual(scheme)) + file.substr(colon);
  }
  if (file.starts_with('/')) return "file://" + file;
  try {
    usual_place(file);
  } catch (const Error& error) {
    throw refuse("which cannot be found: " + error.why());
  }
  const std::size_t begin = place.find("://") + 3;
  const std::size_t path = std::min(place.find('/', begin), place.size());
  std::string relative = file;
  if (is_web(place.substr(0, begin - 3))) relative = percent_encode(relative, "/");
  return place.substr(0, path) + normal_path(place.substr(path) + "/" + relative);
}

void CommonFolders::add(const std::string& location) {
  const std::string authority = authority_of(location);
  // A signature may hold slashes.
  const std::size_t end = is_web(location.substr(0, location.find("://")))
                              ? location.find_first_of("?#")
                              : std::string::npos;
  std::string folder = location.substr(0, end);
  folder.resize(folder.rfind('/') + 1);
  if (folder.size() < authority.size()) return;
  const auto found = std::find_if(folders_.begin(), folders_.end(),
                                  [&](const auto& one) { return one.first == authority; });
  if (found == folders_.end()) {
    if (folders_.size() < kMostFolders) folders_.emplace_back(authority, std::move(folder));
    return;
  }
  std::string& common = found->second;
  const auto other =
      std::mismatch(common.begin(), common.end(), folder.begin(), folder.end()).first;
  const std::size_t slash = common.rfind('/', static_cast<std::size_t>(other - common.begin()));
  if (other != common.end()) common.resize(slash + 1);
}

std::vector<std::pair<std::string, std::string>> CommonFolders::take() {
  std::vector<std::pair<std::string, std::string>> taken;
  for (auto& [authority, folder] : folders_)
    if (folder != "file:///") taken.emplace_back("", std::move(folder));
  return taken;
}

}  // namespace batchfs::references
