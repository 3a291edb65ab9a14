#include "engine/view/list/list_spec.h"

#include <algorithm>

#include <fmt/format.h>

namespace batchfs {

namespace {

std::string one_of(const JsonRef& json, const std::vector<std::string>& choices) {
  const std::string text = json.string();
  if (std::find(choices.begin(), choices.end(), text) == choices.end())
    throw json.error(fmt::format("'{}' is none of {}, {}{}", text, choices[0], choices[1],
                                 did_you_mean(text, choices)));
  return text;
}

/// A number or a length of time, as text.
std::string tolerance_text(const JsonRef& json) {
  return json.is_string() ? json.string() : fmt::format("{}", json.number());
}

bool ends_in(const std::string& name, std::string_view extension) {
  return name.size() > extension.size() && name.ends_with(extension);
}

}  // namespace

FileSpec parse_file(const JsonRef& json, const FilePath& file_path) {
  FileSpec file{.path = json.path()};
  if (json.is_object()) {
    json.allow_only({"file", "digest"});
    file.name = json.at("file").string();
    if (const auto digest = json.find("digest")) file.digest = digest->string();
  } else {
    file.name = json.string();
  }
  if (file.name.empty()) throw json.error("the file's name is empty");
  if (!file_path) throw json.error("a file cannot be named here");
  file.place = file_path(file.name);
  return file;
}

Json file_json(const FileSpec& file) { return {{"file", file.name}, {"digest", file.digest}}; }

void check_digest(const FileSpec& file, const std::string& digest) {
  if (file.digest.empty() || file.digest == digest) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: '{}' is not the file that the view was made for: its digest is {}, "
                          "the view has {}",
                          file.path, file.name, digest, file.digest));
}

std::optional<ListSpec> parse_list(const JsonRef& samples, const FilePath& file_path) {
  const auto list = samples.find("list");
  if (!list) {
    for (const char* key : {"labels", "anchor", "snap", "tolerance"})
      if (const auto other = samples.find(key)) throw other->error("it goes with \"list\"");
    return std::nullopt;
  }
  ListSpec spec;
  spec.file = parse_file(*list, file_path);
  spec.is_csv = ends_in(spec.file.name, ".csv");
  if (!spec.is_csv && !ends_in(spec.file.name, ".npy"))
    throw list->error(fmt::format("'{}' is neither a .npy nor a .csv file", spec.file.name));
  if (const auto anchor = samples.find("anchor"))
    spec.center = one_of(*anchor, {"start", "center"}) == "center";
  if (const auto snap = samples.find("snap"))
    spec.nearest = one_of(*snap, {"exact", "nearest"}) == "nearest";
  if (const auto tolerance = samples.find("tolerance")) {
    if (!spec.nearest) throw tolerance->error("it goes with \"snap\": \"nearest\"");
    spec.tolerance_path = tolerance->path();
    if (tolerance->is_object())
      for (const auto& [dim, value] : tolerance->members())
        spec.tolerance.emplace_back(dim, tolerance_text(value));
    else
      spec.tolerance.emplace_back("", tolerance_text(*tolerance));
  }
  if (const auto labels = samples.find("labels")) {
    if (labels->is_string())
      throw labels->error(fmt::format("expected a list; write [{}]", labels->value().dump()));
    for (const JsonRef& label : labels->elements()) {
      const std::string name = label.string();
      for (const auto& [other, path] : spec.labels)
        if (other == name) throw label.error(fmt::format("'{}' is given twice", name));
      spec.labels.emplace_back(name, label.path());
    }
    if (spec.labels.empty()) throw labels->error("the list is empty");
    if (!spec.is_csv)
      throw labels->error(
          fmt::format("labels are columns of a .csv file; '{}' has starts only", spec.file.name));
  }
  return spec;
}

}  // namespace batchfs
