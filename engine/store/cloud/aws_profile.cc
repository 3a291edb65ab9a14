#include "engine/store/cloud/aws_profile.h"

#include <fmt/format.h>

#include "engine/base/strings.h"

namespace batchfs {

namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

/// "[default]" and, in the config file, "[profile x]".
bool names_profile(std::string_view section, const std::string& name, bool is_config) {
  section = trimmed(section);
  if (!is_config) return section == name;
  if (section == "default") return name == "default";
  if (!section.starts_with("profile")) return false;
  const std::string_view rest = section.substr(7);
  return !rest.empty() && (rest[0] == ' ' || rest[0] == '\t') && trimmed(rest) == name;
}

void add_settings(AwsProfile& profile, const std::string& text, bool is_config) {
  bool inside = false;
  std::string parent;
  for (const std::string& raw : split(text, '\n')) {
    const bool indented = !raw.empty() && (raw[0] == ' ' || raw[0] == '\t');
    std::string_view line = trimmed(raw);
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    if (line[0] == '[' && !indented) {
      inside = names_profile(line.substr(1, line.find(']') - 1), profile.name, is_config);
      profile.exists |= inside;
      parent.clear();
      continue;
    }
    const std::size_t equals = line.find('=');
    if (!inside || equals == std::string_view::npos) continue;
    const std::string name(trimmed(line.substr(0, equals)));
    std::string_view value = line.substr(equals + 1);
    // A comment begins at a '#' or ';' after a space.
    for (std::size_t i = 1; i < value.size(); ++i)
      if ((value[i] == '#' || value[i] == ';') && (value[i - 1] == ' ' || value[i - 1] == '\t')) {
        value = value.substr(0, i);
        break;
      }
    value = trimmed(value);
    if (indented && !parent.empty()) {
      profile.settings[parent + "." + name] = value;
    } else {
      parent = value.empty() ? name : "";
      profile.settings[name] = value;
    }
  }
}

}  // namespace

std::string AwsProfile::get(const std::string& setting) const {
  const auto it = settings.find(setting);
  return it == settings.end() ? "" : it->second;
}

AwsProfile read_aws_profile(const StoreEnvironment& environment, const std::string& name) {
  const auto from_environment = environment.first_variable({"AWS_PROFILE", "AWS_DEFAULT_PROFILE"});
  AwsProfile profile;
  profile.name = !name.empty() ? name : from_environment.value_or("default");
  const auto read = [&](const char* variable, const char* relative, bool is_config) {
    auto path = environment.variable(variable);
    if (!path) path = environment.in_home(relative);
    if (!path) return;
    if (const auto file = environment.file(*path)) add_settings(profile, file->text, is_config);
  };
  read("AWS_CONFIG_FILE", ".aws/config", true);
  read("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials", false);
  if (!profile.exists && (!name.empty() || from_environment))
    throw Error(
        ErrorCode::not_found,
        fmt::format("no profile '{}' in the AWS config and credentials files", profile.name));
  return profile;
}

}  // namespace batchfs
