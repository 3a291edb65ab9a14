#pragma once
// The text of a view: from a file, JSON or YAML, or from standard input.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace batchfs {

/// What came from standard input. It can be read once: a daemon gets what was read before it was
/// forked, and so do those that follow it.
struct StandardInput {
  std::string text;
  std::filesystem::path folder;  // of the process that read it
  std::string start;             // JSON: "start" of mixtures, in place of their own; empty: none
  std::string where = "standard input";  // for messages
};

struct ViewText {
  std::string json;
  std::string name;              // of the view, when the text gives none
  std::filesystem::path folder;  // what the files are relative to that it names
  std::string where;             // for messages
};

/// Reads standard input where one of `files` is "-". Throws invalid_argument where two are.
std::optional<StandardInput> read_standard_input(const std::vector<std::string>& files);

/// Reads a view file, whose name says what it holds: `.yaml` and `.yml` YAML, others JSON. Of
/// "-", `input`, a text that begins as a JSON object or with one of its comments is JSON. Without
/// `input`, "-" is read here.
ViewText read_view_text(const std::string& file,
                        const std::optional<StandardInput>& input = std::nullopt);

}  // namespace batchfs
