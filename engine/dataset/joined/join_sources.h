#pragma once
// Datasets of several stores or groups as one: the first defines the dimensions, and variables of
// the others lie along them by their labels.

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/dataset/dataset.h"
#include "engine/dataset/joined/axis_join.h"

namespace batchfs {

struct JoinedSource {
  struct Join {
    std::string dim;   // its own
    std::string as;    // that of the first source
    std::string path;  // in the view's file, for messages
    JoinRule rule;
  };
  std::string name;
  std::string path;  // "sources.imerg"
  std::shared_ptr<const Dataset> dataset;
  std::vector<Join> joins;
  /// The names in the source that the view may use, without "name:" in front. Others are left out.
  std::set<std::string> named;
};

/// The first source's variables by their names, and the `named` variables of each source as
/// "name:variable". A dimension that the first source lacks is that of the first source that has
/// it. Reads coordinates, blocking. Throws invalid_argument where dimensions do not match, and what
/// AxisJoin throws. Precondition: `sources` is not empty.
std::shared_ptr<const Dataset> join_sources(const std::vector<JoinedSource>& sources);

}  // namespace batchfs
