#include "engine/dataset/joined/concat_datasets.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/dataset/calendar.h"
#include "engine/dataset/joined/equal_labels.h"
#include "engine/dataset/joined/join_labels.h"
#include "engine/dataset/labels.h"
#include "engine/dataset/units.h"

namespace batchfs {

namespace {

bool has_dim(const Dataset& dataset, const std::string& dim) {
  const auto& dims = dataset.dims();
  return std::any_of(dims.begin(), dims.end(), [&](const auto& each) { return each.first == dim; });
}

class Concatenation {
 public:
  Concatenation(const std::vector<ConcatPart>& parts, const ConcatRule& rule)
      : parts_(parts), rule_(rule), first_(*parts.front().dataset) {}

  std::shared_ptr<const Dataset> run() {
    dim_ = rule_.dim ? *rule_.dim : differing_dim();
    check_dims();
    place();
    Dataset::Parts result;
    result.memory_limit = first_.memory_limit();
    result.attributes = first_.attributes();
    result.dims = first_.dims();
    for (const auto& [dim, original] : first_.repeated_dims())
      if (dim != dim_ && original != dim_) result.repeated_dims.emplace(dim, original);
    for (auto& [dim, size] : result.dims) {
      if (dim == dim_) size = length_;
      if (dim != dim_ && first_.index_of(dim) != nullptr)
        result.indices.emplace(dim, parts_.front().dataset);
    }
    for (const Variable& variable : first_.variables())
      result.variables.push_back(concatenated(variable));
    if (first_.index_of(dim_) != nullptr) {
      const auto index = std::find_if(result.variables.begin(), result.variables.end(),
                                      [&](const Variable& each) { return each.name == dim_; });
      index->unsupported.clear();
      index->parts = all_of(dim_);
      index->concat = axis_;
      index->shape = {length_};
      result.values.emplace(dim_, labels(*index));
    }
    return std::make_shared<const Dataset>(std::move(result));
  }

 private:
  Error failure(const std::string& why) const {
    return Error(ErrorCode::invalid_argument, rule_.path + ": " + why);
  }

  /// "t2m" of all parts.
  std::vector<std::shared_ptr<const Variable>> all_of(const std::string& name) const {
    std::vector<std::shared_ptr<const Variable>> all;
    for (const ConcatPart& part : parts_)
      all.emplace_back(part.dataset, &part.dataset->variable(name));
    return all;
  }

  bool is_labelled(const std::string& dim) const { return first_.index_of(dim) != nullptr; }

  /// Do all parts have the same positions along a dimension?
  std::optional<std::size_t> first_difference(const std::string& dim) const {
    for (std::size_t p = 1; p < parts_.size(); ++p) {
      const Dataset& other = *parts_[p].dataset;
      if (!has_dim(other, dim) || other.dim_size(dim) != first_.dim_size(dim) ||
          (other.index_of(dim) != nullptr) != is_labelled(dim))
        return p;
      if (is_labelled(dim) && !are_equal_labels(first_.index(dim), other.index(dim))) return p;
    }
    return std::nullopt;
  }

  std::string differing_dim() const {
    std::vector<std::string> differing;
    for (const auto& [dim, size] : first_.dims())
      if (first_.original_dim(dim) == dim && first_difference(dim)) differing.push_back(dim);
    if (differing.size() == 1) return differing.front();
    if (differing.empty())
      throw failure(
          "the stores have the same labels along all dimensions; beside one another along a new "
          "one, as members of an ensemble, they are \"concat\": {\"dim\": \"member\"}");
    throw failure(fmt::format(
        "the stores differ along {}; name the dimension along which they lie one behind the "
        "other: \"concat\": \"{}\"",
        join(differing, ", "), differing.front()));
  }

  std::string described(std::size_t part, const std::string& dim) const {
    const Dataset& dataset = *parts_[part].dataset;
    if (!has_dim(dataset, dim)) return fmt::format("'{}' has none", parts_[part].name);
    const std::int64_t size = dataset.dim_size(dim);
    if (size == 0 || dataset.index_of(dim) == nullptr)
      return fmt::format("'{}' has {} positions", parts_[part].name, size);
    const Dataset::Index& index = dataset.index(dim);
    return fmt::format("'{}' has {} labels from {} to {}", parts_[part].name, size,
                       label_text(index, 0), label_text(index, size - 1));
  }

  /// "; the first difference is 10.5 and 10.0 at position 3"; empty where the lengths differ.
  std::string difference(std::size_t part, const std::string& dim) const {
    const Dataset& other = *parts_[part].dataset;
    if (!has_dim(other, dim) || other.dim_size(dim) != first_.dim_size(dim) || !is_labelled(dim) ||
        other.index_of(dim) == nullptr)
      return "";
    const Dataset::Index &one = first_.index(dim), &two = other.index(dim);
    for (std::int64_t i = 0; i < first_.dim_size(dim); ++i)
      if (label_text(one, i) != label_text(two, i))
        return fmt::format("; the first difference is {} and {} at position {}", label_text(one, i),
                           label_text(two, i), i);
    return "";
  }

  void check_dims() const {
    std::vector<std::string> dims;
    for (const auto& [dim, size] : first_.dims()) dims.push_back(dim);
    if (!has_dim(first_, dim_))
      throw Error(ErrorCode::not_found,
                  fmt::format("{0}.concat: '{1}' has no dimension '{2}'{3}; a new one is "
                              "\"concat\": {{\"dim\": \"{2}\"}}",
                              rule_.path, parts_.front().name, dim_, nearest_or_all(dim_, dims)));
    for (const std::string& dim : dims) {
      if (first_.original_dim(dim) == dim_) continue;
      if (const auto part = first_difference(dim))
        throw failure(fmt::format("stores {} along '{}' have the same '{}', but {}, and {}{}",
                                  rule_.is_new ? "beside one another" : "one behind the other",
                                  dim_, dim, described(0, dim), described(*part, dim),
                                  difference(*part, dim)));
    }
    for (const ConcatPart& part : parts_) {
      if (!has_dim(*part.dataset, dim_))
        throw failure(fmt::format("'{}' has no dimension '{}'", part.name, dim_));
      if ((part.dataset->index_of(dim_) != nullptr) != is_labelled(dim_))
        throw failure(fmt::format("'{}' has {} '{}', and '{}' has {}", parts_.front().name,
                                  is_labelled(dim_) ? "a coordinate" : "no coordinate", dim_,
                                  part.name, is_labelled(dim_) ? "none" : "one"));
    }
  }

  void place() {
    const auto axis = std::make_shared<ConcatAxis>();
    axis_ = axis;
    if (rule_.prefer != ConcatRule::Prefer::none) return merge(*axis);
    if (is_labelled(dim_) && !rule_.is_new) check_order(read_labels());
    std::int64_t length = 0;
    for (const ConcatPart& part : parts_) length += part.dataset->dim_size(dim_);
    std::int64_t begin = 0;
    for (const ConcatPart& part : parts_) {
      const std::int64_t size = part.dataset->dim_size(dim_);
      axis->parts.push_back({part.name, Positions::range(0, size).within(begin, length)});
      begin += size;
    }
    length_ = length;
  }

  /// Places each label once, in ascending or descending order, as the first part has it.
  void merge(ConcatAxis& axis) {
    if (!is_labelled(dim_))
      throw failure(fmt::format("prefer: '{}' has no labels that parts could share", dim_));
    const std::vector<JoinLabels> labels = read_labels();
    for (std::size_t p = 0; p < labels.size(); ++p) {
      if (const auto twice = labels[p].duplicates())
        throw failure(fmt::format(
            "'{}' of '{}' has the label {} twice, at positions {} and {}", dim_, parts_[p].name,
            label_text(parts_[p].dataset->index(dim_), twice->first), twice->first, twice->second));
      if (static_cast<std::int64_t>(labels[p].order().size()) != labels[p].size())
        throw failure(
            fmt::format("'{}' of '{}' has positions without a label, which \"prefer\" "
                        "cannot sort",
                        dim_, parts_[p].name));
    }
    std::vector<std::vector<std::int64_t>> places(parts_.size());
    std::visit(
        [&](const auto& first) {
          using Values = std::decay_t<decltype(first)>;
          const auto value = [&](const Place& place) -> const auto& {
            return std::get<Values>(
                labels[place.part].values())[static_cast<std::size_t>(place.position)];
          };
          std::vector<Place> all;
          for (std::size_t p = 0; p < labels.size(); ++p)
            for (const std::int64_t position : labels[p].order()) all.push_back({p, position});
          std::stable_sort(all.begin(), all.end(),
                           [&](const Place& a, const Place& b) { return value(a) < value(b); });
          std::vector<Place> kept;
          for (const Place& place : all) {
            if (kept.empty() || value(kept.back()) < value(place))
              kept.push_back(place);
            else if (rule_.prefer == ConcatRule::Prefer::last)
              kept.back() = place;
          }
          int direction = 0;
          for (std::size_t p = 0; p < labels.size() && direction == 0; ++p)
            direction = direction_of(labels[p]);
          if (direction < 0) std::reverse(kept.begin(), kept.end());
          length_ = static_cast<std::int64_t>(kept.size());
          kept_ = std::move(kept);
        },
        labels.front().values());
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      std::vector<std::int64_t> positions(kept_.size(), Positions::kNone);
      for (std::size_t i = 0; i < kept_.size(); ++i)
        if (kept_[i].part == p) positions[i] = kept_[i].position;
      axis.parts.push_back({parts_[p].name, Positions::list(std::move(positions))});
    }
  }

  /// Reads the labels of each part; all of one kind and calendar.
  std::vector<JoinLabels> read_labels() const {
    std::vector<JoinLabels> labels;
    for (const ConcatPart& part : parts_) {
      try {
        labels.emplace_back(part.dataset->index(dim_));
      } catch (const Error& error) {
        throw Error(error.code(),
                    fmt::format("{}: '{}' of '{}': {}", rule_.path, dim_, part.name, error.why()),
                    error.where());
      }
      const JoinLabels &before = labels.front(), &own = labels.back();
      if (own.form() != before.form())
        throw failure(fmt::format("the labels of '{}' are of another kind in '{}' than in '{}'",
                                  dim_, part.name, parts_.front().name));
      if (own.form() == JoinLabels::Form::times && own.calendar() != before.calendar())
        throw failure(fmt::format("'{}' of '{}' is of the calendar {}, and that of '{}' of {}",
                                  dim_, parts_.front().name, calendar_name(before.calendar()),
                                  part.name, calendar_name(own.calendar())));
    }
    return labels;
  }

  /// Throws unless the labels of each part follow those of the part before it.
  void check_order(const std::vector<JoinLabels>& labels) const {
    int direction = 0;
    for (std::size_t p = 0; p < labels.size() && direction == 0; ++p)
      direction = direction_of(labels[p]);
    std::size_t before = 0;
    for (std::size_t p = 1; p < labels.size(); ++p) {
      if (labels[p].order().empty()) continue;
      if (labels[before].order().empty()) {
        before = p;
        continue;
      }
      if (direction == 0) direction = is_before(labels[before], labels[p]) ? 1 : -1;
      if (!(direction > 0 ? is_before(labels[before], labels[p])
                          : is_before(labels[p], labels[before])))
        throw failure(fmt::format(
            "'{}' of '{}' ({}) does not lie behind '{}' ({}); give the stores in their order, "
            "or say which of two equal labels holds: \"prefer\": \"last\"",
            dim_, parts_[p].name, labels[p].extent(), parts_[before].name,
            labels[before].extent()));
      before = p;
    }
  }

  /// 1: ascending, -1: descending, 0: it has no two labels.
  static int direction_of(const JoinLabels& labels) {
    if (labels.order().size() < 2) return 0;
    return labels.order().front() <= labels.order().back() ? 1 : -1;
  }

  /// Is the greatest label of the one below the least of the other?
  static bool is_before(const JoinLabels& one, const JoinLabels& other) {
    return std::visit(
        [&](const auto& values) {
          const auto& others = std::get<std::decay_t<decltype(values)>>(other.values());
          return values[static_cast<std::size_t>(one.order().back())] <
                 others[static_cast<std::size_t>(other.order().front())];
        },
        one.values());
  }

  /// The labels of all parts. Times that are numbers count from the same date.
  Dataset::Index labels(const Variable& variable) const {
    const Dataset::Index& first = first_.index(dim_);
    Dataset::Index result{{first.values.type, {length_}, {}}, first.cf};
    std::uint32_t itemsize = first.values.type.itemsize;
    for (const ConcatPart& part : parts_) {
      const Dataset::Index& own = part.dataset->index(dim_);
      const bool is_text =
          first.values.type.kind == own.values.type.kind &&
          (own.values.type.kind == Kind::unicode || own.values.type.kind == Kind::bytes);
      if (is_text)
        itemsize = std::max(itemsize, own.values.type.itemsize);
      else if (!(own.values.type == first.values.type))
        throw failure(fmt::format("'{}' is {} in '{}' and {} in '{}'", dim_,
                                  first.values.type.name(), parts_.front().name,
                                  own.values.type.name(), part.name));
      if (own.cf.note != first.cf.note)
        throw failure(fmt::format("'{}' counts in '{}' from another date than in '{}': {}, and {}",
                                  dim_, part.name, parts_.front().name, own.cf.note,
                                  first.cf.note));
    }
    result.values.type.itemsize = itemsize;
    result.values.data = Buffer(static_cast<std::size_t>(length_) * itemsize);
    if (length_ > 0) std::memset(result.values.data.data(), 0, result.values.data.size());
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      const NdArray& own = parts_[p].dataset->index(dim_).values;
      const Positions& positions = variable.concat->parts[p].positions;
      const auto [begin, end] = positions.held();
      for (std::int64_t i = begin; i < end; ++i)
        if (positions[i] != Positions::kNone)
          std::memcpy(result.values.data.data() + static_cast<std::size_t>(i) * itemsize,
                      own.data.data() + static_cast<std::size_t>(positions[i]) * own.type.itemsize,
                      own.type.itemsize);
    }
    return result;
  }

  /// A variable of the first part, with its parts where it has the dimension.
  Variable concatenated(const Variable& variable) const {
    Variable result = variable;
    const auto refuse = [&](const std::string& why) {
      result.unsupported = why;
      result.array = nullptr;
      result.strings = nullptr;
      result.axis = nullptr;
      return result;
    };
    if (first_.repeats_dim(variable, dim_))
      return refuse(
          fmt::format("it has the dimension '{}' more than once, along which the stores "
                      "are joined",
                      dim_));
    const auto along = std::find(variable.dims.begin(), variable.dims.end(), dim_);
    if (along != variable.dims.end()) {
      result.concat_dim = static_cast<std::size_t>(along - variable.dims.begin());
      result.shape[result.concat_dim] = length_;
    }
    for (const ConcatPart& part : parts_) {
      const Variable* own = part.dataset->find(variable.name);
      if (own == nullptr)
        return along == variable.dims.end() ? result
                                            : refuse(fmt::format("'{}' lacks it", part.name));
      if (own->dims != variable.dims)
        return refuse(fmt::format("its dimensions are {} in '{}' and {} in '{}'",
                                  join(variable.dims, ", "), parts_.front().name,
                                  join(own->dims, ", "), part.name));
      if (along == variable.dims.end()) continue;
      if (!own->is_readable() && variable.name != dim_)
        return refuse(fmt::format("in '{}': {}", part.name, own->unsupported));
      // Promotes types like numpy: packed years beside others.
      if (own->cf.decoded.is_float() && result.cf.decoded.is_float()) {
        if (own->cf.decoded.itemsize > result.cf.decoded.itemsize)
          result.cf.decoded = own->cf.decoded;
      } else if (are_texts(own->cf.decoded, result.cf.decoded)) {
        result.cf.decoded.itemsize = std::max(result.cf.decoded.itemsize, own->cf.decoded.itemsize);
      } else if (!(own->cf.decoded == variable.cf.decoded) && variable.name != dim_ &&
                 variable.array != nullptr)
        return refuse(fmt::format("it is {} in '{}' and {} in '{}'", variable.cf.decoded.name(),
                                  parts_.front().name, own->cf.decoded.name(), part.name));
      if (variable.cf.time == CfDecoding::Time::none &&
          !are_same_units(units_of(*own), units_of(variable)) && variable.name != dim_)
        return refuse(fmt::format("its units are {} in '{}' and {} in '{}'",
                                  described_units(variable), parts_.front().name,
                                  described_units(*own), part.name));
    }
    if (along == variable.dims.end()) return result;
    result.parts = all_of(variable.name);
    result.concat = axis_;
    return result;
  }

  /// Are both texts of fixed length (which may differ)?
  static bool are_texts(const DataType& one, const DataType& other) {
    return one.kind == other.kind && (one.kind == Kind::unicode || one.kind == Kind::bytes);
  }

  static std::string described_units(const Variable& variable) {
    const std::string units = units_of(variable);
    return units.empty() ? "missing" : Json(units).dump();
  }

  const std::vector<ConcatPart>& parts_;
  const ConcatRule& rule_;
  const Dataset& first_;
  struct Place {
    std::size_t part;
    std::int64_t position;
  };
  std::string dim_;
  std::int64_t length_ = 0;
  std::vector<Place> kept_;  // with "prefer", by position of the result
  std::shared_ptr<const ConcatAxis> axis_;
};

}  // namespace

std::shared_ptr<const Dataset> concat_datasets(const std::vector<ConcatPart>& parts,
                                               const ConcatRule& rule) {
  if (parts.size() == 1) return parts.front().dataset;
  for (const ConcatPart& part : parts) part.dataset->load_index_values();
  return Concatenation(parts, rule).run();
}

}  // namespace batchfs
