// batchfs status: the counters of a mount, once.

#include "engine/base/json.h"
#include "engine/base/strings.h"
#include "tools/cli/command.h"
#include "tools/cli/store_options.h"
#include "tools/cli/text.h"
#include "tools/service/mounts.h"

namespace batchfs {

namespace {

struct StatsOptions {
  std::string directory;
  bool json = false;
};

/// Sizes as people read them, counts with commas, the rest as it is.
std::string value_text(const std::string& name, const Json& value) {
  const bool is_bytes =
      name.starts_with("bytes_") || name.ends_with("_bytes") || name.starts_with("memory_");
  if (value.is_number_unsigned() || (value.is_number_integer() && value.get<std::int64_t>() >= 0)) {
    const auto number = value.get<std::uint64_t>();
    return is_bytes        ? format_size(number)
           : name == "pid" ? std::to_string(number)
                           : format_count(number);
  }
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_string()) return printable(value.get<std::string>());
  return json_text(value, -1);
}

void show(const StatsOptions& options, Output& output) {
  const std::string path = require_batchfs_mount(options.directory);
  const std::string text = read_text_file(path + "/.batchfs/status.json");
  if (options.json) return output.write(text);
  const Json status = parse_json(text, path + "/.batchfs/status.json");
  Table table({options.directory, ""});
  const auto add = [&table](const std::string& name, const Json& value, const std::string& before) {
    std::string words = before + name;
    for (char& c : words) {
      if (c == '_') c = ' ';
    }
    table.add({words, value_text(name, value)});
  };
  for (const auto& [name, value] : status.items()) {
    if (!value.is_object())
      add(name, value, "");
    else
      for (const auto& [inner, inner_value] : value.items()) add(inner, inner_value, name + ": ");
  }
  output.write(table.text(0));
}

}  // namespace

CommandAction setup_status(CLI::App& app) {
  const auto options = std::make_shared<StatsOptions>();
  app.add_option("DIR", options->directory, "where it is mounted")->required()->type_name("");
  app.add_flag("--json", options->json, "write the JSON of .batchfs/status.json");
  return [options](Output& output) { show(*options, output); };
}

}  // namespace batchfs
