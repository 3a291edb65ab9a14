#include "tools/cli/view_text.h"

#include <algorithm>
#include <cctype>
#include <cstdio>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/yaml.h"
#include "tools/cli/store_options.h"

namespace batchfs {

namespace {

constexpr char kStandardInput[] = "-";

bool is_yaml_name(const std::filesystem::path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension == ".yaml" || extension == ".yml";
}

/// Parsing takes up to 40 times as much memory.
constexpr std::size_t kMaxViewText = 2 << 20;

void check_length(const ViewText& view) {
  if (view.json.size() > kMaxViewText)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("it has {} bytes, and a view file may have 2 MiB; write a long list of "
                            "samples into a file of its own: \"samples\": {{\"list\": FILE}}",
                            view.json.size()),
                view.where);
}

bool begins_as_json(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  return first == std::string::npos || text[first] == '{' || text[first] == '/';
}

}  // namespace

std::optional<StandardInput> read_standard_input(const std::vector<std::string>& files) {
  const auto count = std::count(files.begin(), files.end(), kStandardInput);
  if (count == 0) return std::nullopt;
  if (count > 1)
    throw Error(ErrorCode::invalid_argument,
                "two views cannot come from standard input; put one into a file", "--view -");
  return StandardInput{read_text(stdin, "standard input"), std::filesystem::current_path(), {}};
}

ViewText read_view_text(const std::string& file, const std::optional<StandardInput>& input) {
  if (file == kStandardInput) {
    const StandardInput own = input ? *input : *read_standard_input({file});
    ViewText view{own.text, "view", own.folder, own.where};
    check_length(view);
    if (!begins_as_json(view.json)) view.json = json_of_yaml(view.json, view.where);
    return view;
  }
  const std::filesystem::path path(file);
  const std::string what = "the view file";
  ViewText view{read_text_file(file, what), path.stem().string(), path.parent_path(),
                what + " '" + file + "'"};
  check_length(view);
  if (is_yaml_name(path)) view.json = json_of_yaml(view.json, view.where);
  return view;
}

}  // namespace batchfs
