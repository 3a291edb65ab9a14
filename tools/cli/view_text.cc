#include "tools/cli/view_text.h"

#include <algorithm>
#include <cctype>
#include <cstdio>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/limits.h"
#include "engine/base/strings.h"
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

/// Bytes that reading a view takes, at most: a tensor, which is a member of an object, has a
/// description, a label in a list has its text and a selector.
std::uint64_t reading_memory(std::string_view json) {
  constexpr std::uint64_t kMember = 4096, kElement = 400, kText = 4;
  std::uint64_t members = 0, elements = 0;
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '"')
      while (++i < json.size() && json[i] != '"') i += json[i] == '\\' ? 1 : 0;
    else if (json[i] == ':')
      ++members;
    else if (json[i] == ',' || json[i] == '[' || json[i] == '{')
      ++elements;
  }
  return members * kMember + elements * kElement + json.size() * kText;
}

}  // namespace

void check_view_memory(const ViewText& view, std::uint64_t memory) {
  const std::uint64_t bytes = reading_memory(view.json);
  if (bytes <= max_lists(memory)) return;
  throw Error(ErrorCode::no_memory,
              fmt::format("reading it takes up to {} of memory, and the lists of a view get {} of "
                          "{}; give more with --memory, or write a long list of samples into a "
                          "file of its own: \"samples\": {{\"list\": FILE}}",
                          format_size(bytes), format_size(max_lists(memory)), format_size(memory)),
              view.where);
}

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
