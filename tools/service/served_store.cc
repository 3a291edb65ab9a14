#include "tools/service/served_store.h"

#include <sys/stat.h>

#include <algorithm>

#include "engine/view/sources_spec.h"
#include "tools/service/mounts.h"
#include "tools/service/state_source.h"

namespace batchfs {

namespace {

/// The list of mounts first: stat(2) of a mount that hangs does not return.
bool is_daemon(const std::string& place) {
  if (place.find("://") != std::string::npos) return false;
  try {
    if (const auto type = mounted_type(mount_path(place))) return *type == "fuse.batchfs";
  } catch (const Error&) {
    return false;
  }
  struct stat file;
  return ::stat(place.c_str(), &file) == 0 && S_ISSOCK(file.st_mode);
}

/// Members of the object at `key`, if it is one.
std::vector<std::pair<std::string, Json>> members_of(const Json& config, const char* key) {
  std::vector<std::pair<std::string, Json>> members;
  if (const auto found = config.find(key); found != config.end() && found->is_object())
    for (const auto& [name, value] : found->items()) members.emplace_back(name, value);
  return members;
}

void read_others(const Json& config, ServedStore& served) {
  for (const auto& [name, url] : members_of(config, "stores"))
    if (is_source_name(name) && url.is_string())
      served.others.push_back({.name = name, .url = url.get<std::string>()});
  const auto is_known = [&](const Json& name) {
    return std::any_of(served.others.begin(), served.others.end(),
                       [&](const StoreOptions::Named& other) { return name == other.name; });
  };
  for (const auto& [name, stores] : members_of(config, "series"))
    if (is_source_name(name) && stores.is_array() &&
        std::all_of(stores.begin(), stores.end(), is_known))
      served.series[name] = stores.get<std::vector<std::string>>();
}

}  // namespace

void ServedStore::complete(StoreOptions& options) const {
  options.store = store;
  if (options.group.empty()) options.group = group;
  if (!options.others.empty()) return;
  options.others = others;
  options.series = series;
}

std::optional<ServedStore> served_store(const std::string& place) {
  if (!is_daemon(place)) return std::nullopt;
  const StateSource daemon(place);
  const Json config = daemon.json(handoff::StateText::config);
  const auto text = [](const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  ServedStore served;
  if (config.is_object()) {
    served.store = text(config, "store");
    served.group = text(config, "group");
    read_others(config, served);
    if (const auto views = config.find("views"); views != config.end() && views->is_array())
      for (const Json& view : *views)
        if (view.is_string()) served.views.push_back(view.get<std::string>());
  }
  if (served.store.empty())
    throw Error(ErrorCode::corrupt, "it does not say which store it is of",
                daemon.where(handoff::StateText::config));
  return served;
}

void tell_other_stores(const OpenedStore& opened, Json& config) {
  for (const auto& [name, other] : opened.others) config["stores"][name] = other->store->url();
  for (const auto& [name, members] : opened.series) config["series"][name] = members;
}

}  // namespace batchfs
