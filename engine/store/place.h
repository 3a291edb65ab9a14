#pragma once
// The places of stores and files, as users, reference sets and manifests write them.

#include <string>
#include <string_view>

namespace batchfs {

inline constexpr std::string_view kIcechunkPlace = "icechunk+", kReferencePlace = "reference::";

/// "icechunk+s3://b/x" and "reference::/a.json" in two.
struct KindAndPlace {
  std::string kind;  // kIcechunkPlace, kReferencePlace or empty
  std::string place;
};
KindAndPlace split_kind(const std::string& text);

/// A URL with its scheme in lower case; "file:/p" and "file://localhost/p" (RFC 8089) as
/// "file:///p". Other text is returned as it is.
std::string usual_url(std::string text);

/// The place of a store or an output: a path, for "file:" too, or a URL as usual_url() returns it;
/// its kind stays in front. Throws invalid_argument for "file:p", which may be a path or the name of
/// a file, and for "s3:/bucket", which pathlib makes of "s3://bucket".
std::string usual_place(const std::string& text);

}  // namespace batchfs
