#include "engine/dataset/joined/join_sources.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/dataset/joined/equal_labels.h"
#include "engine/dataset/labels.h"

namespace batchfs {

namespace {

/// "3 labels from A to B", or "3 positions".
std::string described(const JoinAxis& axis) {
  const std::int64_t size = axis.dataset->dim_size(axis.dim);
  if (size == 0 || axis.dataset->index_of(axis.dim) == nullptr)
    return fmt::format("{} positions", size);
  const Dataset::Index& index = axis.dataset->index(axis.dim);
  return fmt::format("{} labels from {} to {}", size, label_text(index, 0),
                     label_text(index, size - 1));
}

class Joiner {
 public:
  explicit Joiner(const std::vector<JoinedSource>& sources) : sources_(sources) {}

  std::shared_ptr<const Dataset> run() {
    const JoinedSource& anchor = sources_.front();
    parts_.memory_limit = anchor.dataset->memory_limit();
    parts_.attributes = anchor.dataset->attributes();
    parts_.variables = anchor.dataset->variables();
    parts_.dims = anchor.dataset->dims();
    parts_.repeated_dims = anchor.dataset->repeated_dims();
    for (const auto& [dim, size] : parts_.dims)
      axes_.emplace(dim, JoinAxis{anchor.name, anchor.dataset, dim});
    for (const JoinedSource& source : sources_) add(source);
    for (const auto& [dim, axis] : axes_)
      if (axis.dataset->index_of(axis.dim) != nullptr && axis.dim == dim)
        parts_.indices.emplace(dim, axis.dataset);
    return std::make_shared<const Dataset>(std::move(parts_));
  }

 private:
  /// How one dimension of a source lies; null: position by position.
  struct Along {
    std::string dim;  // of the result
    std::shared_ptr<const AxisJoin> join;
  };

  void add(const JoinedSource& source) {
    for (const JoinedSource::Join& join : source.joins) check(source, join);
    std::map<std::string, Along> along;  // by its own dimension
    for (const Variable& variable : source.dataset->variables()) {
      parts_.other_names.push_back(source.name + ":" + variable.name);
      if (!source.named.contains(variable.name)) continue;
      Variable joined = variable;
      joined.name = source.name + ":" + variable.name;
      joined.joins.resize(variable.dims.size());
      for (std::size_t d = 0; d < variable.dims.size(); ++d) {
        const auto [found, is_new] = along.try_emplace(variable.dims[d]);
        if (is_new) found->second = lay(source, variable.dims[d], along);
        joined.dims[d] = found->second.dim;
        joined.joins[d] = found->second.join;
        joined.shape[d] = size_of(found->second.dim);
      }
      for (std::size_t d = 0; d < joined.dims.size(); ++d)
        if (std::count(joined.dims.begin(), joined.dims.end(), joined.dims[d]) > 1)
          throw Error(ErrorCode::invalid_argument,
                      fmt::format("{}.join: '{}' would have the dimension '{}' twice", source.path,
                                  joined.name, joined.dims[d]));
      parts_.variables.push_back(std::move(joined));
    }
  }

  /// Checks a view's statements about a source.
  void check(const JoinedSource& source, const JoinedSource::Join& join) const {
    if (&source == &sources_.front())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: the first source is what the others are joined to; it has no "
                              "\"join\" itself",
                              source.path));
    std::vector<std::string> own, known;
    for (const auto& [dim, size] : source.dataset->dims()) own.push_back(dim);
    for (const auto& [dim, axis] : axes_) known.push_back(dim);
    if (std::find(own.begin(), own.end(), join.dim) == own.end())
      throw Error(ErrorCode::not_found,
                  fmt::format("{}: '{}' has no dimension '{}'{}", join.path, source.name, join.dim,
                              nearest_or_all(join.dim, own)));
    if (!axes_.contains(join.as) && !would_repeat(source, join))
      throw Error(ErrorCode::not_found,
                  fmt::format("{}: '{}' has no dimension '{}'{}", join.path, sources_.front().name,
                              join.as, nearest_or_all(join.as, known)));
  }

  /// Is the dimension that the view names the repetition that the source's own will get?
  bool would_repeat(const JoinedSource& source, const JoinedSource::Join& join) const {
    const std::string& original = source.dataset->original_dim(join.dim);
    if (original == join.dim) return false;
    const JoinedSource::Join* first = stated(source, original);
    const std::string& known = first != nullptr ? first->as : original;
    return axes_.contains(known) && join.as == repetition(known, join.dim, original);
  }

  static const JoinedSource::Join* stated(const JoinedSource& source, const std::string& dim) {
    const auto found =
        std::find_if(source.joins.begin(), source.joins.end(),
                     [&](const JoinedSource::Join& join) { return join.dim == dim; });
    return found != source.joins.end() ? &*found : nullptr;
  }

  /// "station:2" for "c:2" where "c" lies along "station".
  static std::string repetition(const std::string& known, const std::string& dim,
                                const std::string& original) {
    return known + dim.substr(original.size());
  }

  std::int64_t size_of(const std::string& dim) const {
    return std::find_if(parts_.dims.begin(), parts_.dims.end(),
                        [&](const auto& known) { return known.first == dim; })
        ->second;
  }

  /// `before`: the dimensions of the source that lie already. A repeated one comes after the one
  /// that it repeats.
  Along lay(const JoinedSource& source, const std::string& dim,
            const std::map<std::string, Along>& before) {
    const JoinAxis own{source.name, source.dataset, dim};
    const std::string& original = source.dataset->original_dim(dim);
    const JoinedSource::Join* said = stated(source, dim);
    if (original != dim) {
      const Along& first = before.at(original);
      const std::string name = repetition(first.dim, dim, original);
      if (said == nullptr || said->as == name) add_repetition(name, first.dim);
      if (said == nullptr && repeats(name, first.dim)) return {name, first.join};
      if (said == nullptr && first.join != nullptr)
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("{0}: '{1}' repeats '{2}' and would be '{3}', which is another "
                                "dimension; say where it lies: \"join\": {{\"{1}\": {{\"as\": "
                                "\"{3}\"}}}}",
                                source.path, dim, original, name));
    }
    if (said != nullptr)
      return {said->as,
              std::make_shared<const AxisJoin>(axes_.at(said->as), own, said->rule, said->path)};
    const auto known = axes_.find(dim);
    if (known == axes_.end()) {
      add_dim(own);
      return {dim, nullptr};
    }
    const JoinAxis& other = known->second;
    if (other.dataset == source.dataset) return {dim, nullptr};
    const bool as_long = other.dataset->dim_size(other.dim) == source.dataset->dim_size(dim);
    const bool labelled =
        other.dataset->index_of(other.dim) != nullptr && source.dataset->index_of(dim) != nullptr;
    if (as_long && (!labelled ||
                    are_equal_labels(other.dataset->index(other.dim), own.dataset->index(own.dim))))
      return {dim, nullptr};
    const bool on_circle = labelled && (has_longitudes(own) || has_longitudes(other));
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{0}: '{1}' is another dimension than in '{2}': {3}, and {4}; say how "
                            "they go together: \"join\": {{\"{1}\": {5}}}",
                            source.path, dim, other.source, described(own), described(other),
                            on_circle ? "{\"period\": 360}" : "\"exact\""));
  }

  bool repeats(const std::string& dim, const std::string& original) const {
    const auto found = parts_.repeated_dims.find(dim);
    return found != parts_.repeated_dims.end() && found->second == original;
  }

  /// A dimension with the labels of `original`, unless there is one of its name.
  void add_repetition(const std::string& name, const std::string& original) {
    if (!axes_.try_emplace(name, axes_.at(original)).second) return;
    parts_.dims.emplace_back(name, size_of(original));
    parts_.repeated_dims.emplace(name, original);
  }

  /// A dimension of this source alone, with its coordinate.
  void add_dim(const JoinAxis& own) {
    parts_.dims.emplace_back(own.dim, own.dataset->dim_size(own.dim));
    axes_.emplace(own.dim, own);
    const Variable* index = own.dataset->index_of(own.dim);
    const bool taken = std::any_of(parts_.variables.begin(), parts_.variables.end(),
                                   [&](const Variable& each) { return each.name == own.dim; });
    if (index != nullptr && !taken) parts_.variables.push_back(*index);
  }

  const std::vector<JoinedSource>& sources_;
  Dataset::Parts parts_;
  std::map<std::string, JoinAxis> axes_;  // by dimension of the result
};

}  // namespace

std::shared_ptr<const Dataset> join_sources(const std::vector<JoinedSource>& sources) {
  return Joiner(sources).run();
}

}  // namespace batchfs
