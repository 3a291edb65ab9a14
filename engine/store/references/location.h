#pragma once
// The names of files in reference sets.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace batchfs::references {

/// The URL of a file as a set names it: by its URL, an absolute path, or a path relative to the
/// set's place, which is a URL that ends in '/'. Characters stand for themselves, "%20" too, but in
/// web addresses. Throws not_supported for other file systems and chains of them (fsspec's "::").
std::string absolute_location(std::string_view file, const std::string& place);

/// Is it a path relative to the set's place?
bool is_relative(std::string_view file);

/// For each service or machine, the longest folder that all its files lie in. At most 64.
class CommonFolders {
 public:
  void add(const std::string& location);
  /// Returns the folders in the form of VirtualPlaces::Manner.
  std::vector<std::pair<std::string, std::string>> take();

 private:
  std::vector<std::pair<std::string, std::string>> folders_;  // by authority
};

}  // namespace batchfs::references
