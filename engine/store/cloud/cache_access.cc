#include "engine/store/cloud/cache_access.h"

#include <fmt/format.h>

namespace batchfs {

namespace {

std::vector<std::string> separate(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

std::shared_ptr<SharedCaches> shared_caches(const StoreConfig& config, const ObjectService& service,
                                            const StoreEnvironment& environment) {
  if (config.revalidate) return nullptr;
  std::vector<std::string> urls =
      config.via ? *config.via
                 : parse_cache_urls(separate(environment.variable(kCachesVariable).value_or("")));
  if (urls.empty()) return nullptr;
  switch (service.credentials_kind()) {
    case ObjectService::Credentials::harmless:
      break;
    case ObjectService::Credentials::secret:
      for (const std::string& url : urls)
        if (!is_confidential(url))
          throw Error(ErrorCode::invalid_argument,
                      fmt::format("{} asks for a token or password, which would travel in clear; "
                                  "use an https:// cache, or --anon for public data",
                                  service.url()),
                      "--via " + url);
      break;
    case ObjectService::Credentials::sign_ranges:
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the account key of {} signs the range of each request, which caches "
                              "change; use a SAS token (AZURE_STORAGE_SAS_TOKEN), or --anon",
                              service.url()),
                  "--via " + urls.front());
  }
  return std::make_shared<SharedCaches>(SharedCaches::Options{.urls = std::move(urls),
                                                              .timeout = config.timeout,
                                                              .trust = config.cache_trust,
                                                              .verify = config.via_verify,
                                                              .warn = config.warn});
}

}  // namespace batchfs
