#include "engine/store/store.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/store/local.h"

namespace batchfs {

void Store::read_async(const std::string& key, ByteRange range, ReadDone done) {
  ReadOutcome outcome;
  try {
    outcome = read(key, range);
  } catch (...) {
    outcome = std::current_exception();
  }
  done(std::move(outcome));
}

std::shared_ptr<Store> open_store(const std::string& url, const StoreConfig&) {
  if (url.empty()) throw Error(ErrorCode::invalid_argument, "the store's path is empty");
  std::string path = url;
  const std::size_t colon = url.find("://");
  if (colon != std::string::npos) {
    const std::string scheme = url.substr(0, colon);
    if (scheme != "file")
      throw Error(ErrorCode::not_supported,
                  fmt::format("{}:// stores are not supported yet; only local directories are", scheme), url);
    path = url.substr(colon + 3);
  }
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (path.ends_with(".zip"))
    throw Error(ErrorCode::not_supported, "zip stores are not supported yet; unpack it", url);
  return open_local_store(path);
}

void check_key(const std::string& key) {
  for (const std::string& component : split(key, '/'))
    if (component.empty() || component == "." || component == ".." ||
        component.find('\0') != std::string::npos)
      throw Error(ErrorCode::invalid_argument, "not a usable key", key);
}

}  // namespace batchfs
