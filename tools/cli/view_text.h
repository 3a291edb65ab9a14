#pragma once
// The text of a view: from a file, JSON or YAML, or from standard input.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace batchfs {

/// Text read from standard input. It can be read once: the text is read before the daemon is
/// forked, so that the daemon and its successors have it.
struct StandardInput {
  std::string text;
  std::filesystem::path folder;  // of the process that read it
  std::string start;             // JSON: "start" of mixtures, instead of their own; empty: none
  std::string where = "standard input";  // for messages
};

struct ViewText {
  std::string json;
  std::string name;              // of the view, if the text has none
  std::filesystem::path folder;  // base of the relative file names in it
  std::string where;             // for messages
};

/// Reads standard input where one of `files` is "-". Throws invalid_argument where two are.
std::optional<StandardInput> read_standard_input(const std::vector<std::string>& files);

/// Reads a view file; its suffix determines the format: `.yaml` and `.yml` YAML, others JSON. For
/// "-", uses `input`; a text that begins as a JSON object or with one of its comments is JSON.
/// Without `input`, reads standard input here.
ViewText read_view_text(const std::string& file,
                        const std::optional<StandardInput>& input = std::nullopt);

/// Throws no_memory where reading the view takes more than its lists may: `memory` is --memory.
void check_view_memory(const ViewText& view, std::uint64_t memory);

}  // namespace batchfs
