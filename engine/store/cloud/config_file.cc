#include "engine/store/cloud/config_file.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/json.h"

namespace batchfs {

namespace {

enum class Kind { text, secret, flag };

struct Setting {
  const char* name;
  Kind kind;
};

const std::map<std::string, std::vector<Setting>>& known_settings() {
  static const std::map<std::string, std::vector<Setting>> known{
      {"s3",
       {{"endpoint", Kind::text},
        {"region", Kind::text},
        {"profile", Kind::text},
        {"requester_pays", Kind::flag},
        {"path_style", Kind::flag},
        {"access_key_id", Kind::text},
        {"secret_access_key", Kind::secret},
        {"session_token", Kind::secret}}},
      {"gcs",
       {{"endpoint", Kind::text},
        {"credentials_file", Kind::text},
        {"billing_project", Kind::text}}},
      {"azure",
       {{"endpoint", Kind::text},
        {"account", Kind::text},
        {"account_key", Kind::secret},
        {"sas_token", Kind::secret},
        {"connection_string", Kind::secret}}}};
  return known;
}

std::optional<std::string> default_path(const StoreEnvironment& environment) {
  if (const auto base = environment.variable("XDG_CONFIG_HOME"))
    return *base + "/batchfs/config.json";
  return environment.in_home(".config/batchfs/config.json");
}

}  // namespace

ConfigFile::ConfigFile(const StoreEnvironment& environment) {
  const auto named = environment.variable("BATCHFS_CONFIG");
  const auto path = named ? named : default_path(environment);
  if (!path) return;
  const auto file = environment.file(*path);
  if (!file) {
    if (named)
      throw Error(ErrorCode::not_found, "BATCHFS_CONFIG names a file that does not exist", *path);
    return;
  }
  bool has_secret = false;
  try {
    const Json document = parse_json(file->text, *path, {.allow_nan = false, .unique_keys = true});
    const JsonRef root(document, "");
    for (const auto& [service, section] : root.members()) {
      const auto known = known_settings().find(service);
      if (known == known_settings().end()) root.allow_only({"s3", "gcs", "azure"});
      std::vector<std::string> names;
      for (const Setting& setting : known->second) names.push_back(setting.name);
      for (const auto& [name, value] : section.members()) {
        const auto setting =
            std::find_if(known->second.begin(), known->second.end(),
                         [&name = name](const Setting& s) { return name == s.name; });
        if (setting == known->second.end())
          throw section.error(
              fmt::format("unknown setting '{}'{}", name, did_you_mean(name, names)));
        if (setting->kind == Kind::flag) {
          settings_[service + "." + name] = value.boolean() ? "true" : "";
        } else {
          settings_[service + "." + name] = value.string();
          has_secret |= setting->kind == Kind::secret && !value.string().empty();
        }
      }
    }
  } catch (Error& error) {
    throw error.at(*path);
  }
  if (has_secret && file->others_can_read)
    throw Error(ErrorCode::access_denied,
                "the file holds secrets and others can read it; chmod 600 it", *path);
}

std::string ConfigFile::text(const std::string& service, const std::string& setting) const {
  const auto it = settings_.find(service + "." + setting);
  return it == settings_.end() ? "" : it->second;
}

bool ConfigFile::flag(const std::string& service, const std::string& setting) const {
  return !text(service, setting).empty();
}

}  // namespace batchfs
