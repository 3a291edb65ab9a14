#include "engine/view/samples/joined_axes.h"

#include <algorithm>
#include <memory>
#include <set>

#include <fmt/format.h>

namespace batchfs {

const Positions& JoinedAxes::along(const Variable& variable, std::size_t d,
                                   std::int64_t nanoseconds) {
  const std::string& dim = variable.dims[d];
  const AxisJoin* join = variable.join_along(d);
  if (join == nullptr) return selected_.at(dim);
  if (join->ratio() > 1 && selected_.at(dim).drops_dim())
    throw Error(
        ErrorCode::not_supported,
        fmt::format("{}: \"select\" takes one position of '{}', which are {} of '{}'; write "
                    "it as a list, which keeps the dimension",
                    join->path(), dim, join->ratio(), join->source()));
  const auto key = std::tuple(join, dim, nanoseconds);
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  return known_.emplace(key, composed(join->shifted(nanoseconds), selected_.at(dim), join->ratio()))
      .first->second;
}

const std::vector<Positions>& JoinedAxes::in_parts(const ConcatAxis& concat,
                                                   const Positions& positions) {
  const std::lock_guard lock(mutex_);
  std::list<InParts>& known = parts_[&concat];
  for (const InParts& each : known)
    if (each.positions.is_same(positions)) return each.parts;
  InParts& added = known.emplace_back(InParts{positions, {}});
  for (const ConcatAxis::Part& part : concat.parts)
    added.parts.push_back(composed(part.positions, positions));
  return added.parts;
}

std::vector<VariablePlacement> JoinedAxes::in_parts(const Variable& variable,
                                                    const VariablePlacement& placement) {
  const Positions& whole = placement.axes[variable.concat_dim].selected;
  const std::vector<Positions>& parts = in_parts(*variable.concat, whole);
  std::vector<VariablePlacement> result;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    VariablePlacement& own = result.emplace_back(placement);
    own.variable += static_cast<std::uint32_t>(p);
    own.axes[variable.concat_dim].selected = parts[p];
    own.axes[variable.concat_dim].padded = whole;
    own.pads = p == 0;
    own.is_first = placement.is_first && p == 0;
  }
  return result;
}

std::vector<VariablePlacement> JoinedAxes::by_offset(const Variable& variable,
                                                     const std::vector<OffsetList>& durations,
                                                     const VariablePlacement& placement) {
  std::vector<VariablePlacement> all{placement};
  for (std::size_t d = 0; d < variable.dims.size(); ++d) {
    const auto list = std::find_if(durations.begin(), durations.end(), [&](const OffsetList& each) {
      return each.dim == variable.dims[d];
    });
    if (list == durations.end() || variable.join_along(d) == nullptr) continue;
    const auto shared = std::make_shared<const std::vector<Duration>>(list->durations);
    const std::vector<std::int64_t> lengths = fixed_lengths(*list, false);
    std::vector<VariablePlacement> result;
    for (const VariablePlacement& before : all)
      for (std::size_t o = 0; o < lengths.size(); ++o) {
        VariablePlacement& own = result.emplace_back(before);
        AxisPlacement& axis = own.axes[d];
        axis.selected = along(variable, d, lengths[o]);
        axis.offsets = {0};
        axis.by_label = nullptr;
        axis.durations = shared;
        axis.before = static_cast<std::int64_t>(o) * axis.size;
        own.base += axis.before * axis.stride;
      }
    all = std::move(result);
  }
  return all;
}

void JoinedAxes::add_lacking(const TensorDefinition& tensor, const std::string& dim, bool circle,
                             const Dataset& dataset, std::vector<Reach::Lacking>& lacking) {
  const OffsetList* durations = nullptr;
  for (const OffsetList& list : tensor.durations)
    if (list.dim == dim) durations = &list;
  std::set<const AxisJoin*> seen;
  std::vector<std::string> names = tensor.variables;
  for (const MadeSpec& made : tensor.made)
    names.insert(names.end(), made.of.begin(), made.of.end());
  for (const std::string& name : names) {
    const Variable* variable = dataset.find(name);
    for (std::size_t d = 0; variable != nullptr && d < variable->dims.size(); ++d) {
      const AxisJoin* join = variable->join_along(d);
      if (join == nullptr || variable->dims[d] != dim || join->pads() || !seen.insert(join).second)
        continue;
      std::vector<std::int64_t> steps{0}, lengths{0};
      if (durations != nullptr)
        lengths = fixed_lengths(*durations, circle);
      else if (const auto* given = tensor.offsets_along(dim))
        steps = *given;
      for (const std::int64_t length : lengths) {
        const Positions& positions = along(*variable, d, length);
        if (!positions.has_gaps()) continue;
        std::vector<bool> missing(static_cast<std::size_t>(positions.size() / join->ratio()));
        for (std::int64_t i = 0; i < positions.size(); ++i)
          if (positions[i] == Positions::kNone)
            missing[static_cast<std::size_t>(i / join->ratio())] = true;
        lacking.push_back({join->path(), join->source(), steps,
                           std::make_shared<const MarkedCounts>(missing, circle)});
      }
    }
  }
}

JoinedOffsets joined_offsets(const TensorDefinition& tensor, const std::string& dim,
                             const Dataset& dataset) {
  JoinedOffsets result;
  result.in_anchor = !tensor.made.empty();  // their times are labels of the anchor
  for (const std::string& name : tensor.variables) {
    const Variable* variable = dataset.find(name);
    for (std::size_t d = 0; variable != nullptr && d < variable->dims.size(); ++d)
      if (variable->dims[d] == dim)
        (variable->join_along(d) != nullptr ? result.in_others : result.in_anchor) = true;
  }
  return result;
}

std::vector<std::int64_t> fixed_lengths(const OffsetList& offsets, bool circle) {
  if (circle)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: lengths of time do not go with \"wrap\"", offsets.path));
  std::vector<std::int64_t> result;
  for (const Duration& duration : offsets.durations) {
    if (duration.months != 0)
      throw Error(ErrorCode::not_supported,
                  fmt::format("{}: '{}' has no fixed length, which labels of another source need; "
                              "write days, as \"31d\"",
                              offsets.path, duration_text(duration)));
    result.push_back(duration.nanoseconds);
  }
  return result;
}

}  // namespace batchfs
