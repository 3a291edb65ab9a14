#include "engine/store/output/output_store.h"

#include <filesystem>

#include <fmt/format.h>

#include "engine/store/cloud/cloud_store.h"
#include "engine/store/output/cloud_output.h"
#include "engine/store/place.h"
#include "engine/store/uri.h"

namespace batchfs {

namespace {

std::string scheme_in(const std::string& url) {
  const std::size_t colon = url.find("://");
  return colon == std::string::npos ? "" : url.substr(0, colon);
}

}  // namespace

void OutputStore::put(const std::string& key, std::string_view text) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  put(key, {&bytes, 1});
}

std::string shown_output(const std::string& url) {
  const std::string scheme = scheme_in(url);
  const bool may_be_signed = scheme.starts_with("az") || scheme.starts_with("abfs");
  return may_be_signed ? url.substr(0, url.find('?')) : url;
}

std::shared_ptr<OutputStore> open_output(const std::string& place, const StoreConfig& config) {
  const std::string url = usual_place(place);
  const std::string scheme = scheme_in(url);
  if (scheme.empty() || scheme == "file") {
    std::string path = scheme.empty() ? url : path_of_file_url(url);
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    if (path.empty()) throw Error(ErrorCode::invalid_argument, "the output has no name");
    if (path.ends_with(".zip"))
      throw Error(ErrorCode::not_supported,
                  "archives cannot be written; name a folder and pack it afterwards", path);
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored) && !std::filesystem::is_directory(path, ignored))
      throw Error(ErrorCode::invalid_argument, "this is a file; name a new folder", path);
    return open_local_output(path);
  }
  if (is_cloud_scheme(scheme)) return open_cloud_output(url, config);
  throw Error(ErrorCode::not_supported,
              fmt::format("{}:// cannot be written; name a folder, s3://, gs:// or az://", scheme));
}

}  // namespace batchfs
