#pragma once
// "list" of a view's samples, and the keys that go with it, as written.

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/json.h"

namespace batchfs {

/// Where a file lies that a view names. Throws for one that must not be read.
using FilePath = std::function<std::string(const std::string& name)>;

/// A file that a view names: as text, or {"file": NAME, "digest": "xxh3:..."}.
struct FileSpec {
  std::string name;    // as written
  std::string place;   // where it lies
  std::string digest;  // the required digest, always set once the file was read; empty: any
  std::string path;    // in the view, for messages
};

/// Throws invalid_argument with the JSON path, also where `file_path` is empty: files cannot be
/// named.
FileSpec parse_file(const JsonRef& json, const FilePath& file_path);
/// The JSON that parse_file() reads, with the digest.
Json file_json(const FileSpec& file);
/// Throws invalid_argument if a file does not have the digest in its view.
void check_digest(const FileSpec& file, const std::string& digest);

struct ListSpec {
  FileSpec file;
  bool is_csv = false;
  bool center = false;   // rows name the middle of the window, not its start
  bool nearest = false;  // labels need not be those of the coordinate
  std::vector<std::pair<std::string, std::string>> tolerance;  // by dimension; "": all others
  std::string tolerance_path;
  /// Columns that become tensors, and their paths.
  std::vector<std::pair<std::string, std::string>> labels;
};

/// Reads "list" and the keys that go with it. nullopt without "list"; then throws for those others.
std::optional<ListSpec> parse_list(const JsonRef& samples, const FilePath& file_path);

}  // namespace batchfs
