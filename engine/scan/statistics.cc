#include "engine/scan/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <span>

#include <fmt/format.h>

#include "engine/dataset/labels.h"
#include "engine/scan/joined_statistics.h"
#include "engine/scan/sweep.h"
#include "engine/view/samples/reached.h"
#include "engine/view/split/part_mask.h"

namespace batchfs {

namespace {

constexpr std::int64_t kMaxEntries = 1 << 24;

using Offsets = std::vector<std::int64_t>;  // in elements, ascending

/// Calls `visit` with blocks of the elements at every sum of offsets, one taken per axis, less
/// those at the same places behind `before` where that is given.
template <class Visit>
void for_each_block(const std::vector<Offsets>& axes, const double* values, const double* before,
                    Visit&& visit) {
  constexpr std::size_t kBlock = 1024;
  static_assert(kBlock % TwoPassMoments::kLanes == 0);
  alignas(64) double block[kBlock];
  std::size_t filled = 0;
  static const Offsets kOne{0};
  const Offsets& inner = axes.empty() ? kOne : axes.back();
  const bool contiguous =
      inner.back() - inner.front() + 1 == static_cast<std::int64_t>(inner.size());
  std::vector<std::size_t> at(axes.empty() ? 0 : axes.size() - 1);
  for (;;) {
    std::int64_t base = 0;
    for (std::size_t a = 0; a < at.size(); ++a) base += axes[a][at[a]];
    for (std::size_t i = 0; i < inner.size();) {
      const std::size_t n = std::min(inner.size() - i, kBlock - filled);
      double* to = block + filled;
      if (contiguous) {
        const std::int64_t from = base + inner[i];
        std::memcpy(to, values + from, n * sizeof(double));
        if (before != nullptr)
          for (std::size_t k = 0; k < n; ++k) to[k] -= before[from + static_cast<std::int64_t>(k)];
      } else {
        for (std::size_t k = 0; k < n; ++k) {
          const std::int64_t from = base + inner[i + k];
          to[k] = before != nullptr ? values[from] - before[from] : values[from];
        }
      }
      i += n;
      filled += n;
      if (filled == kBlock) {
        visit(std::span(block, filled));
        filled = 0;
      }
    }
    std::size_t a = at.size();
    while (a > 0 && at[a - 1] + 1 == axes[a - 1].size()) at[--a] = 0;
    if (a == 0) break;
    ++at[a - 1];
  }
  if (filled > 0) visit(std::span(block, filled));
}

/// One variable on its way. use() is thread-safe.
class VariablePass {
 public:
  VariablePass(const View& view, std::uint32_t number, const PartMask& part,
               const std::vector<std::string>& per, const std::string& tendency)
      : variable_(*view.variables()[number]),
        mask_(part.of(variable_.dims)),
        reached_(positions_along(view, number, per)),
        sweep_(variable_, pointers(reached_), tendency_axis(variable_, per, tendency)) {
    const Variable& variable = variable_;
    result_.name = variable.name;
    tendency_axis_ = tendency_axis(variable, per, tendency);
    if (tendency_axis_ != Sweep::kNone) {
      result_.tendency_dim = tendency;
      find_jumps(view.stored(number, tendency_axis_));
    }
    for (std::size_t d = 0; d < variable.dims.size(); ++d) {
      if (std::find(per.begin(), per.end(), variable.dims[d]) == per.end()) continue;
      const Positions& positions = view.stored(number, d);
      if (positions.drops_dim()) continue;
      kept_.push_back(d);
      kept_positions_.push_back(&positions);
      result_.dims.push_back(variable.dims[d]);
      result_.shape.push_back(positions.size());
      if (__builtin_mul_overflow(entries_, static_cast<std::int64_t>(sweep_.indices(d).size()),
                                 &entries_) ||
          entries_ > kMaxEntries)
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("'{}' would have more than {} numbers; keep fewer dimensions",
                                variable.name, kMaxEntries));
    }
    if (element_count(result_.shape) > kMaxEntries)
      throw Error(ErrorCode::invalid_argument, "the selection repeats too many positions",
                  variable.name);
    values_.resize(static_cast<std::size_t>(entries_));
    if (tendency_axis_ != Sweep::kNone) tendencies_.resize(static_cast<std::size_t>(entries_));
  }

  const Sweep& sweep() const { return sweep_; }

  void use(std::int64_t number, const Sweep::Piece& piece, std::shared_ptr<const Buffer> values) {
    Slot mine;
    mine.piece = piece;
    const std::int64_t blanked = mask_.is_whole() ? 0 : blank_others(piece, values);
    mine.values = std::move(values);
    for_each_entry(piece, [&](std::int64_t entry, const std::vector<Offsets>& axes) {
      mine.parts.push_back({entry, moments(axes, data(mine), nullptr)});
      mine.parts.back().moments.nan -= blanked;
      if (tendency_axis_ != Sweep::kNone) add_tendencies(entry, axes, mine);
    });
    bool joins_before = false, joins_behind = false;
    {
      const std::lock_guard lock(mutex_);
      slots_[number] = std::move(mine);
      const auto is_read = [&](std::int64_t n) { return slots_.contains(n); };
      joins_before = continues(number) && is_read(number - 1);
      joins_behind = continues(number + 1) && is_read(number + 1);
    }
    if (joins_before) join(number);
    if (joins_behind) join(number + 1);
    const std::lock_guard lock(mutex_);
    merge();
  }

  VariableStatistics result() {
    result_.values = in_selection_order(values_);
    if (tendency_axis_ != Sweep::kNone) result_.tendencies = in_selection_order(tendencies_);
    return std::move(result_);
  }

 private:
  struct Part {
    std::int64_t entry;
    Moments moments;
  };
  /// A piece that has been read, until it and what follows are merged.
  struct Slot {
    Sweep::Piece piece;
    std::shared_ptr<const Buffer> values;
    std::vector<Part> parts, tendencies, border;  // border: from the piece before to this one
    bool has_border = false;
  };

  /// What samples reach, but everything selected along dimensions that keep numbers of their own:
  /// each has a number.
  static std::vector<Positions> positions_along(const View& view, std::uint32_t number,
                                                const std::vector<std::string>& per) {
    std::vector<Positions> positions = positions_to_read(view, number);
    const std::vector<std::string>& dims = view.variables()[number]->dims;
    for (std::size_t d = 0; d < dims.size(); ++d)
      if (std::find(per.begin(), per.end(), dims[d]) != per.end())
        positions[d] = without_gaps(view.stored(number, d));
    return positions;
  }

  /// Where positions along the tendency's dimension do not follow the one before them in the
  /// selection: between them lie some that no sample reaches.
  void find_jumps(const Positions& selected) {
    const std::vector<std::int64_t>& indices = sweep_.indices(tendency_axis_);
    jumps_.assign(indices.size(), false);
    if (selected.is_range()) {
      for (std::size_t i = 1; i < indices.size(); ++i) jumps_[i] = indices[i] != indices[i - 1] + 1;
      return;
    }
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < selected.size(); ++i)
      if (selected[i] != Positions::kNone) all.push_back(selected[i]);
    std::sort(all.begin(), all.end());
    for (std::size_t i = 1; i < indices.size(); ++i)
      jumps_[i] = *std::upper_bound(all.begin(), all.end(), indices[i - 1]) != indices[i];
  }
  /// Of the first position of a piece, or another one.
  bool is_jump(const Sweep::Piece& piece, std::size_t place = 0) const {
    return jumps_[static_cast<std::size_t>(piece.axes[tendency_axis_].first) + place];
  }

  /// Sets elements of other parts of the view's split to NaN, in a copy; gives their number in each
  /// entry, which is the same in all.
  std::int64_t blank_others(const Sweep::Piece& piece,
                            std::shared_ptr<const Buffer>& values) const {
    auto copy = std::make_shared<Buffer>(values->size());
    std::memcpy(copy->data(), values->data(), values->size());
    std::vector<std::span<const std::int64_t>> indices;
    for (const Sweep::Axis& axis : piece.axes) indices.emplace_back(axis.indices);
    std::int64_t blanked = mask_.blank(piece.box, indices, reinterpret_cast<double*>(copy->data()));
    for (const std::size_t k : kept_)
      blanked /= static_cast<std::int64_t>(piece.axes[k].indices.size());
    values = std::move(copy);
    return blanked;
  }

  static std::size_t tendency_axis(const Variable& variable, const std::vector<std::string>& per,
                                   const std::string& tendency) {
    const auto it = std::find(variable.dims.begin(), variable.dims.end(), tendency);
    if (tendency.empty() || it == variable.dims.end() ||
        std::find(per.begin(), per.end(), tendency) != per.end())
      return Sweep::kNone;
    return static_cast<std::size_t>(it - variable.dims.begin());
  }

  static const double* data(const Slot& slot) {
    return reinterpret_cast<const double*>(slot.values->data());
  }

  /// In elements.
  static Dims strides(const Sweep::Piece& piece) { return c_strides(piece.box.shape, 1); }

  static Moments moments(const std::vector<Offsets>& axes, const double* values,
                         const double* before) {
    TwoPassMoments result;
    for_each_block(axes, values, before, [&](std::span<double> block) { result.add(block); });
    result.next_pass();
    for_each_block(axes, values, before, [&](std::span<double> block) { result.add(block); });
    return result.moments();
  }

  /// Calls `visit(entry, axes)` for every entry that the piece has elements of.
  template <class Visit>
  void for_each_entry(const Sweep::Piece& piece, Visit&& visit) const {
    const Dims stride = strides(piece);
    std::vector<Offsets> axes(piece.axes.size());
    for (std::size_t d = 0; d < axes.size(); ++d)
      for (std::int64_t index : piece.axes[d].indices) axes[d].push_back(index * stride[d]);
    std::vector<std::size_t> at(kept_.size());
    std::vector<Offsets> all;
    for (std::size_t k : kept_) all.push_back(axes[k]);
    for (;;) {
      std::int64_t entry = 0;
      for (std::size_t k = 0; k < kept_.size(); ++k) {
        const std::size_t d = kept_[k];
        entry = entry * static_cast<std::int64_t>(sweep_.indices(d).size()) + piece.axes[d].first +
                static_cast<std::int64_t>(at[k]);
        axes[d] = {all[k][at[k]]};
      }
      visit(entry, axes);
      std::size_t k = kept_.size();
      while (k > 0 && at[k - 1] + 1 == all[k - 1].size()) at[--k] = 0;
      if (k == 0) return;
      ++at[k - 1];
    }
  }

  /// The axes of one step along the tendency's dimension.
  std::vector<Offsets> one_step(std::vector<Offsets> axes) const {
    axes[tendency_axis_] = {0};
    return axes;
  }

  /// Inside the piece.
  void add_tendencies(std::int64_t entry, std::vector<Offsets> axes, Slot& slot) const {
    const Offsets steps = axes[tendency_axis_];
    if (steps.size() < 2) return;
    const std::int64_t stride = strides(slot.piece)[tendency_axis_];
    if (steps.back() - steps.front() == stride * static_cast<std::int64_t>(steps.size() - 1)) {
      axes[tendency_axis_].pop_back();
      slot.tendencies.push_back({entry, moments(axes, data(slot) + stride, data(slot))});
      return;
    }
    axes[tendency_axis_] = {0};
    for (std::size_t i = 1; i < steps.size(); ++i)
      if (!is_jump(slot.piece, i))
        slot.tendencies.push_back(
            {entry, moments(axes, data(slot) + steps[i], data(slot) + steps[i - 1])});
  }

  /// Does this piece go on along the tendency's dimension where the one before it ends?
  bool continues(std::int64_t number) const {
    return tendency_axis_ != Sweep::kNone && number < sweep_.pieces() && number % sweep_.run() != 0;
  }

  /// The tendencies from the last step of the piece before to the first of this one.
  void join(std::int64_t number) {
    const Slot *before, *mine;
    {
      const std::lock_guard lock(mutex_);
      before = &slots_.at(number - 1);
      mine = &slots_.at(number);
    }
    const auto last =
        before->piece.axes[tendency_axis_].indices.back() * strides(before->piece)[tendency_axis_];
    const auto first =
        mine->piece.axes[tendency_axis_].indices.front() * strides(mine->piece)[tendency_axis_];
    // Pieces differ in their length along this dimension only, but with it in their strides.
    std::vector<std::vector<Offsets>> from;
    for_each_entry(before->piece, [&](std::int64_t, const std::vector<Offsets>& axes) {
      from.push_back(one_step(axes));
    });
    std::vector<Part> border;
    std::size_t i = 0;
    if (!is_jump(mine->piece))
      for_each_entry(mine->piece, [&](std::int64_t entry, const std::vector<Offsets>& axes) {
        border.push_back({entry, difference_moments(one_step(axes), data(*mine) + first, from[i++],
                                                    data(*before) + last)});
      });
    const std::lock_guard lock(mutex_);
    Slot& slot = slots_.at(number);
    slot.border = std::move(border);
    slot.has_border = true;
  }

  /// Of values at `axes` less those at the corresponding places of `other_axes`.
  static Moments difference_moments(const std::vector<Offsets>& axes, const double* values,
                                    const std::vector<Offsets>& other_axes, const double* other) {
    if (axes == other_axes) return moments(axes, values, other);
    std::vector<double> subtract;
    for_each_block(other_axes, other, nullptr, [&](std::span<double> block) {
      subtract.insert(subtract.end(), block.begin(), block.end());
    });
    TwoPassMoments result;
    for (int pass = 0; pass < 2; ++pass) {
      if (pass == 1) result.next_pass();
      const double* from = subtract.data();
      for_each_block(axes, values, nullptr, [&](std::span<double> block) {
        for (double& value : block) value -= *from++;
        result.add(block);
      });
    }
    return result.moments();
  }

  /// Precondition: mutex_ held. Takes the complete parts, in order.
  void merge() {
    for (auto it = slots_.find(next_); it != slots_.end(); it = slots_.find(next_)) {
      Slot& slot = it->second;
      if (continues(next_) && !slot.has_border) return;
      for (const Part& part : slot.parts)
        values_[static_cast<std::size_t>(part.entry)].add(part.moments);
      for (const Part& part : slot.border)
        tendencies_[static_cast<std::size_t>(part.entry)].add(part.moments);
      for (const Part& part : slot.tendencies)
        tendencies_[static_cast<std::size_t>(part.entry)].add(part.moments);
      slots_.erase(next_ - 1);  // its border is taken
      ++next_;
      if (!continues(next_)) slots_.erase(next_ - 1);
    }
  }

  std::vector<Moments> in_selection_order(const std::vector<MergedMoments>& sums) const {
    std::vector<Moments> result;
    std::vector<std::vector<std::int64_t>> ranks;
    for (std::size_t k = 0; k < kept_.size(); ++k) {
      const std::vector<std::int64_t>& indices = sweep_.indices(kept_[k]);
      ranks.emplace_back();
      for (std::int64_t i = 0; i < kept_positions_[k]->size(); ++i) {
        const std::int64_t position = (*kept_positions_[k])[i];
        ranks.back().push_back(position == Positions::kNone
                                   ? Positions::kNone
                                   : std::lower_bound(indices.begin(), indices.end(), position) -
                                         indices.begin());
      }
    }
    for (std::int64_t i = 0; i < element_count(result_.shape); ++i) {
      std::int64_t rest = i, entry = 0, stride = 1;
      bool is_there = true;
      for (std::size_t k = kept_.size(); k-- > 0;) {
        const std::int64_t rank = ranks[k][static_cast<std::size_t>(rest % result_.shape[k])];
        is_there = is_there && rank != Positions::kNone;
        entry += rank * stride;
        rest /= result_.shape[k];
        stride *= static_cast<std::int64_t>(sweep_.indices(kept_[k]).size());
      }
      result.push_back(is_there ? sums[static_cast<std::size_t>(entry)].moments() : Moments{});
    }
    return result;
  }

  const Variable& variable_;
  const VariableMask mask_;
  const std::vector<Positions> reached_;  // per dimension
  const Sweep sweep_;
  std::size_t tendency_axis_ = Sweep::kNone;
  std::vector<bool> jumps_;        // per distinct index along the tendency's dimension
  std::vector<std::size_t> kept_;  // dimensions of the array
  std::vector<const Positions*> kept_positions_;
  std::int64_t entries_ = 1;
  VariableStatistics result_;

  std::mutex mutex_;  // guards what follows
  std::map<std::int64_t, Slot> slots_;
  std::int64_t next_ = 0;  // piece to be merged
  std::vector<MergedMoments> values_, tendencies_;
};

/// A list along the dimensions, nested, of one number of each entry.
template <class Number>
Json nested(const std::vector<Moments>& moments, const Dims& shape, std::size_t d, std::size_t& at,
            Number number) {
  if (d == shape.size()) return number(moments[at++]);
  Json list = Json::array();
  for (std::int64_t i = 0; i < shape[d]; ++i)
    list.push_back(nested(moments, shape, d + 1, at, number));
  return list;
}

template <class Number>
Json nested(const std::vector<Moments>& moments, const Dims& shape, Number number) {
  std::size_t at = 0;
  return nested(moments, shape, 0, at, number);
}

/// What is not finite is null: JSON has no other word for it.
Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json mean_of(const Moments& m) { return m.count > 0 ? finite(m.mean) : Json(); }
Json std_of(const Moments& m) { return finite(m.std()); }

}  // namespace

std::vector<std::string> vertical_dims(const Dataset& dataset) {
  static constexpr std::array<std::string_view, 21> kNames = {"level",         "lev",
                                                              "plev",          "levels",
                                                              "pressure",      "pressure_level",
                                                              "isobaricInhPa", "model_level",
                                                              "hybrid",        "sigma",
                                                              "height",        "altitude",
                                                              "depth",         "layer",
                                                              "nlevel",        "heightAboveGround",
                                                              "soil_layer",    "channel",
                                                              "channels",      "band",
                                                              "variable"};
  std::vector<std::string> dims;
  for (const auto& [dim, size] : dataset.dims()) {
    bool vertical = std::find(kNames.begin(), kNames.end(), dim) != kNames.end();
    if (const Variable* index = dataset.index_of(dim)) {
      const auto axis = index->attributes.find("axis");
      vertical = vertical || index->attributes.contains("positive") ||
                 (axis != index->attributes.end() && axis->is_string() && *axis == "Z");
    }
    if (vertical) dims.push_back(dim);
  }
  return dims;
}

std::string time_dim(const Dataset& dataset) {
  for (const auto& [dim, size] : dataset.dims())
    if (const Variable* index = dataset.index_of(dim);
        index && (index->cf.decoded.kind == Kind::datetime || index->cf.counts_from))
      return dim;
  for (const auto& [dim, size] : dataset.dims())
    if (dim == "time") return dim;
  return {};
}

std::vector<VariableStatistics> compute_statistics(Engine& engine, const Dataset& dataset,
                                                   const View& view,
                                                   const StatisticsOptions& options,
                                                   const StatisticsProgress& progress) {
  const std::vector<std::string> per = options.per ? *options.per : vertical_dims(dataset);
  const std::string tendency = options.tendency ? *options.tendency : time_dim(dataset);
  const PartMask part(view);
  for (const std::string& dim : part.dims())
    if (std::count(per.begin(), per.end(), dim) > 0)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("no numbers for each '{0}': the parts of the view's split differ along it",
                      dim));
  for (const std::string& dim : per) dataset.dim_size(dim);
  if (!tendency.empty()) dataset.dim_size(tendency);
  std::vector<std::unique_ptr<VariablePass>> passes;
  std::int64_t all = 0, before = 0;
  for (std::uint32_t v = 0; v < view.variables().size(); ++v) {
    const Variable& variable = *view.variables()[v];
    const DataType& type = variable.cf.decoded;
    check_joined_statistics(variable, part.dims(), per);
    if (!type.is_float() && !type.is_integer()) continue;
    passes.push_back(std::make_unique<VariablePass>(view, v, part, per, tendency));
    all += passes.back()->sweep().pieces();
  }
  std::vector<VariableStatistics> results;
  for (const auto& pass : passes) {
    pass->sweep().read(
        engine,
        [&](std::int64_t number, const Sweep::Piece& piece, std::shared_ptr<const Buffer> values) {
          pass->use(number, piece, std::move(values));
        },
        [&](std::int64_t done) {
          if (progress) progress(before + done, all);
        });
    before += pass->sweep().pieces();
    results.push_back(pass->result());
  }
  return results;
}

Json statistics_json(const std::vector<VariableStatistics>& statistics, const View& view) {
  Json variables = Json::object();
  for (const VariableStatistics& variable : statistics) {
    Json json = Json::object();
    if (!variable.dims.empty()) {
      json["dims"] = variable.dims;
      Json coordinates = Json::object();
      for (const View::Coordinate& coordinate : view.coordinates()) {
        if (std::find(variable.dims.begin(), variable.dims.end(), coordinate.name) ==
            variable.dims.end())
          continue;
        for (std::int64_t i = 0; i < coordinate.values.shape[0]; ++i)
          coordinates[coordinate.name].push_back(label_json(coordinate.values, i));
      }
      json["coordinates"] = std::move(coordinates);
    }
    json["count"] =
        nested(variable.values, variable.shape, [](const Moments& m) { return Json(m.count); });
    json["nan"] =
        nested(variable.values, variable.shape, [](const Moments& m) { return Json(m.nan); });
    json["mean"] = nested(variable.values, variable.shape, mean_of);
    json["std"] = nested(variable.values, variable.shape, std_of);
    json["min"] =
        nested(variable.values, variable.shape, [](const Moments& m) { return finite(m.min); });
    json["max"] =
        nested(variable.values, variable.shape, [](const Moments& m) { return finite(m.max); });
    if (!variable.tendency_dim.empty())
      json["tendency"] = {{"dim", variable.tendency_dim},
                          {"count", nested(variable.tendencies, variable.shape,
                                           [](const Moments& m) { return Json(m.count); })},
                          {"mean", nested(variable.tendencies, variable.shape, mean_of)},
                          {"std", nested(variable.tendencies, variable.shape, std_of)}};
    variables[variable.name] = std::move(json);
  }
  return variables;
}

}  // namespace batchfs
