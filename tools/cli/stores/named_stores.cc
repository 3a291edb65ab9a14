#include "tools/cli/stores/named_stores.h"

#include <vector>

#include <fmt/format.h>

#include "engine/base/braces.h"
#include "engine/base/error.h"
#include "engine/view/sources_spec.h"

namespace batchfs {

namespace {

constexpr std::size_t kMaxStores = 4096;

void add(StoreOptions& options, const std::string& name, std::string url) {
  if (!is_source_name(name))
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("'{}' is not a name of a store; a name has letters, digits, '_', '-' and "
                    "'.', as in imerg=s3://bucket/b.zarr",
                    name));
  for (const StoreOptions::Named& other : options.others)
    if (other.name == name)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("'{}' is given twice; put quotes around a URL with braces", name));
  if (options.others.size() == kMaxStores)
    throw Error(ErrorCode::invalid_argument, fmt::format("more than {} stores", kMaxStores));
  options.others.push_back({name, std::move(url)});
}

}  // namespace

void add_named_stores(StoreOptions& options, const std::string& name, const std::string& url) {
  const std::vector<ExpandedText> names = expand_braces(name, kMaxStores);
  const std::size_t place = url.find("{}");
  if (names.size() > 1) {
    if (place == std::string::npos)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("'{}={}' gives {} names to one URL; write {{}} where the URLs differ",
                              name, url, names.size()));
    for (const ExpandedText& each : names)
      add(options, each.text, url.substr(0, place) + each.key + url.substr(place + 2));
    return;
  }
  const std::vector<ExpandedText> urls = expand_braces(url, kMaxStores);
  if (urls.size() == 1) return add(options, name, urls.front().text);
  if (options.series.contains(name) || !is_source_name(name)) add(options, name, url);
  std::vector<std::string>& series = options.series[name];
  for (const ExpandedText& each : urls) {
    series.push_back(fmt::format("{}.{}", name, each.key));
    add(options, series.back(), each.text);
  }
}

}  // namespace batchfs
