#include "tools/service/served_store.h"

#include <sys/stat.h>

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

}  // namespace

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
    if (const auto views = config.find("views"); views != config.end() && views->is_array())
      for (const Json& view : *views)
        if (view.is_string()) served.views.push_back(view.get<std::string>());
  }
  if (served.store.empty())
    throw Error(ErrorCode::corrupt, "it does not say which store it is of",
                daemon.where(handoff::StateText::config));
  return served;
}

}  // namespace batchfs
