#include "engine/view/mix/mixed_view.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "engine/dataset/labels.h"
#include "engine/dataset/units.h"
#include "engine/view/batch_coordinates.h"
#include "engine/view/mix/mix_counts.h"
#include "engine/view/mix/mixed_plan.h"
#include "engine/view/mix/mixed_tensors.h"

namespace batchfs {

/// A sample's number is its number in its component, counted on from those of the components
/// before.
class MixedView final : public View {
 public:
  MixedView(MixSpec spec, std::vector<std::shared_ptr<const View>> views)
      : View(views[0]->dataset(), spec.view),
        mix_(std::move(spec)),
        views_(std::move(views)),
        schedule_(schedule_of(mix_, epochs_of(views_))) {
    std::vector<std::string> names;
    for (const MixComponent& component : mix_.components) names.push_back(component.name);
    check_mixed_tensors(views_, names);
    check_units(names);
    first_samples_ = {0};
    for (const auto& view : views_) {
      if (view->samples() > (INT64_C(1) << 60) - first_samples_.back())
        throw Error(ErrorCode::not_supported, "the mixture has more than 2^60 samples");
      first_samples_.push_back(first_samples_.back() + view->samples());
    }
    window_dims_ = views_[0]->window_dims_;
    MixedWindows windows = mix_windows(views_, names);
    for (std::size_t w = 0; w < window_dims_.size(); ++w)
      selected_.insert_or_assign(window_dims_[w].name, windows.selected[w]);
    first_positions_ = std::move(windows.first);
    coordinates_ = std::move(windows.coordinates);
    warnings_.insert(warnings_.end(), windows.warnings.begin(), windows.warnings.end());
    take_tensors();
    for (const auto& view : views_) take_channels(*view);
    if (batches() == 0)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format(
              "batch.remainder: \"drop\" leaves no batch: an epoch has {} samples, a batch has {}",
              epoch_samples(), spec_.batch_size));
  }

  std::int64_t samples() const override { return first_samples_.back(); }
  std::int64_t epoch_samples() const override {
    return by_batch() ? schedule_.positions() * spec_.batch_size : schedule_.positions();
  }
  std::int64_t batch_size() const override { return spec_.batch_size; }
  std::int64_t batches() const override {
    if (by_batch()) return schedule_.positions();
    return epoch_samples() / spec_.batch_size +
           (spec_.remainder != ViewSpec::Remainder::drop && epoch_samples() % spec_.batch_size != 0
                ? 1
                : 0);
  }

  std::int64_t windows() const override {
    std::int64_t sum = 0;
    for (const auto& view : views_)
      if (__builtin_add_overflow(sum, view->windows(), &sum)) return INT64_MAX;
    return sum;
  }

  Dropped dropped() const override {
    Dropped all;
    for (const auto& view : views_)
      for (const auto& [restriction, count] : view->dropped()) {
        const auto same = [&name = restriction](const auto& each) { return each.first == name; };
        const auto known = std::find_if(all.begin(), all.end(), same);
        if (known == all.end())
          all.emplace_back(restriction, count);
        else
          known->second += count;
      }
    return all;
  }

  std::vector<std::string> warnings() const override {
    std::vector<std::string> lines = warnings_;
    for (std::size_t c = 0; c < views_.size(); ++c)
      for (const std::string& line : views_[c]->warnings())
        lines.push_back(mix_.components[c].name + ": " + line);
    return lines;
  }

  bool needs_scan() const override {
    return std::any_of(views_.begin(), views_.end(),
                       [](const auto& view) { return view->needs_scan(); });
  }

  /// Null stands for every window being a sample, as for estimates: indices are the components'.
  std::shared_ptr<const View> with_samples(
      std::shared_ptr<const SampleIndex> index) const override {
    if (index != nullptr)
      throw Error(ErrorCode::internal, "a mixture has the samples of its components");
    std::vector<std::shared_ptr<const View>> views;
    for (const auto& view : views_)
      views.push_back(view->needs_scan() ? view->with_samples(nullptr) : view);
    return with_components(std::move(views));
  }

  std::vector<std::shared_ptr<const View>> components() const override { return views_; }

  std::uint64_t held_memory() const override {
    std::uint64_t bytes = 0;
    for (const Coordinate& coordinate : coordinates_) {
      const Coordinate* own = views_[0]->index_coordinate(coordinate.name);
      if (own == nullptr || own->values != coordinate.values)
        bytes += coordinate.values->data.size();
    }
    return bytes;
  }

  std::shared_ptr<const View> with_components(
      std::vector<std::shared_ptr<const View>> components) const override {
    return std::make_shared<MixedView>(mix_, std::move(components));
  }

  std::vector<Dims> shapes(std::int64_t batch) const override {
    std::vector<Dims> result;
    for (const TensorSpec& tensor : tensors_) {
      result.push_back(tensor.shape);
      result.back()[0] = row_count(batch);
    }
    return result;
  }

  std::int64_t row_count(std::int64_t batch) const override {
    if (by_batch() || spec_.remainder == ViewSpec::Remainder::pad) return spec_.batch_size;
    return std::max<std::int64_t>(
        0, std::min(spec_.batch_size, epoch_samples() - batch * spec_.batch_size));
  }

  std::vector<std::int64_t> samples_in(std::int64_t epoch, std::int64_t batch,
                                       RowRange range) const override {
    std::vector<std::int64_t> numbers;
    for (const Sample& sample : samples_of(epoch, batch, range))
      numbers.push_back(first_samples_[sample.component] + sample.number);
    return numbers;
  }

  using View::plan;
  BatchPlan plan(std::int64_t epoch, std::int64_t batch, PlanLimit limit) const override {
    const std::vector<Sample> samples = samples_of(epoch, batch, {0, row_count(batch)});
    BatchPlan plan;
    plan.shapes = shapes(batch);
    for (const Sample& sample : samples)
      plan.samples.push_back(first_samples_[sample.component] + sample.number);
    std::vector<std::int64_t> numbers, places;
    for (std::size_t c = 0; c < views_.size(); ++c) {
      numbers.clear(), places.clear();
      for (std::size_t i = 0; i < samples.size(); ++i) {
        if (samples[i].component != c) continue;
        numbers.push_back(samples[i].number);
        places.push_back(static_cast<std::int64_t>(i));
      }
      const std::uint64_t taken = plan.parts.size() * sizeof(Part);
      const PlanLimit left{limit.bytes - std::min(limit.bytes, taken)};
      if (!numbers.empty())
        append_plan(views_[c]->plan_samples(numbers, places, left), firsts_[c],
                    static_cast<std::uint32_t>(tensors_.size()), plan);
    }
    return plan;
  }

  std::vector<BatchCoordinate> batch_coordinates(std::int64_t epoch,
                                                 std::int64_t batch) const override {
    return coordinates_of_batch(*this, epoch, batch);
  }

  Json schema() const override {
    Json schema = View::schema();
    if (epoch_samples() != samples()) schema["epoch_samples"] = epoch_samples();
    schema["mixing"] = mixing_name(mix_.mixing);
    schema["block"] = schedule_.block();
    schema["period"] = schedule_.counts().period;
    Json components = Json::array();
    for (std::size_t c = 0; c < views_.size(); ++c) {
      components.push_back({{"name", mix_.components[c].name},
                            {"first", first_samples_[c]},
                            {"samples", views_[c]->samples()},
                            {"rate", schedule_.counts().rates[c]},
                            {"per_epoch", schedule_.counts().per_epoch[c]},
                            {"start", mix_.components[c].start.json()}});
      if (!views_[c]->spec_.normalize) continue;
      // The variables that the numbers of its "normalize" belong to: names may differ.
      const Json own = views_[c]->schema();
      Json& tensors = components.back()["tensors"] = Json::object();
      for (const Json& tensor : own["tensors"])
        tensors[tensor["name"].get<std::string>()] = tensor["variables"];
    }
    schema["components"] = std::move(components);
    return schema;
  }

  Json resolved() const override {
    Json view = spec_.document;
    view["name"] = spec_.name;
    for (std::size_t c = 0; c < views_.size(); ++c) {
      const MixComponent& component = mix_.components[c];
      Json& own = view["mix"][component.name];
      if (!own.is_object()) own = Json::object();
      own["view"] = views_[c]->resolved();
      for (const char* key : {"batch", "formats", "epochs"})  // the mixture's
        own["view"].erase(key);
      if (views_[c]->spec_.epoch_samples)
        own["view"]["epochs"] = {{"samples", *views_[c]->spec_.epoch_samples}};
    }
    view["temperature"] = mix_.temperature;
    view["batch"] = {{"size", spec_.batch_size},
                     {"remainder", remainder_name(spec_.remainder)},
                     {"mixing", mixing_name(mix_.mixing)}};
    if (mix_.mixing != MixSpec::Mixing::stratified) view["batch"]["block"] = schedule_.block();
    view["order"] = {{"seed", spec_.order.seed}};
    view["epochs"] = {{"count", spec_.epochs}, {"samples", epoch_samples()}};
    view["formats"] = spec_.formats;
    return view;
  }

  std::vector<ProvenanceList> provenance_lists(std::int64_t epoch,
                                               std::int64_t batch) const override {
    /// `write(sample, own, out)` for each sample; `own`: where its windows begin in its component.
    const auto of_samples = [&](std::string key, bool is_coordinate, auto write) {
      return ProvenanceList{std::move(key), is_coordinate, row_count(batch),
                            [this, epoch, batch, write](RowRange range, JsonWriter& out) {
                              Dims own(window_dims_.size());
                              for (const Sample& sample : samples_of(epoch, batch, range)) {
                                views_[sample.component]->starts_of(sample.number, own.begin());
                                write(sample, own, out);
                              }
                            }};
    };
    std::vector<ProvenanceList> lists{samples_list(epoch, batch)};
    lists.push_back(
        of_samples("components", false, [this](const Sample& sample, const Dims&, JsonWriter& out) {
          out.value(Json(mix_.components[sample.component].name));
        }));
    lists.push_back(of_samples(
        "component_samples", false,
        [](const Sample& sample, const Dims&, JsonWriter& out) { out.value(sample.number); }));
    lists.push_back(of_samples("windows", false,
                               [this](const Sample& sample, const Dims& own, JsonWriter& out) {
                                 views_[sample.component]->write_window(own, out);
                               }));
    lists.push_back(starts_list(epoch, batch));
    for (std::size_t w = 0; w < window_dims_.size(); ++w)
      if (const std::string& dim = window_dims_[w].name; index_coordinate(dim) != nullptr)
        lists.push_back(of_samples(
            dim, true, [this, w, &dim](const Sample& sample, const Dims& own, JsonWriter& out) {
              const Coordinate* index = views_[sample.component]->index_coordinate(dim);
              out.value(label_json(*index->values, own[w]));
            }));
    return lists;
  }

  /// The plan has the chunks of one component after the other.
  std::vector<ChunkWalk> chunk_walks(std::int64_t epoch, std::int64_t batch) const override {
    std::vector<ChunkWalk> walks;
    for (std::size_t c = 0; c < views_.size(); ++c) {
      const auto next = [this, epoch, batch, c, first = std::int64_t{0}]() mutable {
        std::vector<Row> own;
        while (own.empty() && first < row_count(batch)) {
          const RowRange range{first, std::min(kRowsAtATime, row_count(batch) - first)};
          first = range.end();
          std::vector<std::int64_t> numbers;
          for (const Sample& sample : samples_of(epoch, batch, range))
            if (sample.component == c) numbers.push_back(sample.number);
          own = views_[c]->rows_at(numbers, numbers);  // where they go in the batch does not matter
        }
        return own;
      };
      walks.emplace_back(views_[c]->variables_, views_[c]->placements_of(batch), next,
                         firsts_[c].variable);
    }
    return walks;
  }

  std::string chunk_label(std::uint32_t variable, std::int64_t chunk) const override {
    const auto c =
        static_cast<std::size_t>(std::upper_bound(firsts_.begin(), firsts_.end(), variable,
                                                  [](std::uint32_t number, const FirstParts& each) {
                                                    return number < each.variable;
                                                  }) -
                                 firsts_.begin() - 1);
    const std::string& store = mix_.components[c].store;
    return (store.empty() ? "" : store + ":") +
           views_[c]->chunk_label(variable - firsts_[c].variable, chunk);
  }

 protected:
  std::vector<Row> rows(std::int64_t epoch, std::int64_t batch, RowRange range) const override {
    std::vector<Row> result;
    for (const Sample& sample : samples_of(epoch, batch, range)) {
      Row row;
      row.starts.resize(window_dims_.size());
      starts_of(first_samples_[sample.component] + sample.number, row.starts.begin());
      result.push_back(std::move(row));
    }
    return result;
  }

  void starts_of(std::int64_t sample, std::int64_t* starts) const override {
    const auto c = static_cast<std::size_t>(
        std::upper_bound(first_samples_.begin(), first_samples_.end(), sample) -
        first_samples_.begin() - 1);
    views_[c]->starts_of(sample - first_samples_[c], starts);
    for (std::size_t w = 0; w < window_dims_.size(); ++w) starts[w] += first_positions_[w][c];
  }

 private:
  struct Sample {
    std::size_t component;
    std::int64_t number;  // in it
  };

  static std::vector<std::int64_t> epochs_of(
      const std::vector<std::shared_ptr<const View>>& views) {
    std::vector<std::int64_t> samples;
    for (const auto& view : views) samples.push_back(view->epoch_samples());
    return samples;
  }

  bool by_batch() const { return mix_.mixing == MixSpec::Mixing::batch; }

  /// The sample at an ordinal of the schedule: the epochs of a component follow each other.
  Sample sample_of(std::size_t component, unsigned __int128 scheduled) const {
    const View& view = *views_[component];
    const unsigned __int128 ordinal = mix_.components[component].start.ordinal(scheduled);
    const auto length = static_cast<unsigned __int128>(view.epoch_samples());
    const auto epoch = static_cast<std::int64_t>(static_cast<std::uint64_t>(ordinal / length) &
                                                 static_cast<std::uint64_t>(INT64_MAX));
    return {component, view.sample_at(static_cast<std::int64_t>(ordinal % length), epoch)};
  }

  std::vector<Sample> samples_of(std::int64_t epoch, std::int64_t batch, RowRange range) const {
    if (needs_scan())
      throw Error(ErrorCode::internal, "the samples of this view are not known yet");
    std::vector<Sample> samples;
    if (by_batch()) {
      const MixSchedule::Place place = schedule_.places(batch, 1, epoch).front();
      const auto size = static_cast<unsigned __int128>(spec_.batch_size);
      for (std::int64_t i = range.first; i < range.end(); ++i)
        samples.push_back(
            sample_of(place.component, place.ordinal * size + static_cast<unsigned __int128>(i)));
      return samples;
    }
    for (const MixSchedule::Place& place :
         schedule_.places(batch * spec_.batch_size + range.first, range.count, epoch))
      samples.push_back(sample_of(place.component, place.ordinal));
    return samples;
  }

  /// The stored variables of a tensor that keep their units, by where they begin in it.
  static std::map<std::int64_t, const Variable*> measured(const View& view, std::uint32_t tensor) {
    std::map<std::int64_t, const Variable*> variables;
    for (const auto* all : {&view.placements_, &view.coarsened_placements_})
      for (const VariablePlacement& each : *all) {
        const Variable& variable = *view.variables_[each.made ? 0 : each.variable];
        if (each.tensor == tensor && !each.made && !view.normalizations_.contains(each.variable) &&
            variable.cf.time == CfDecoding::Time::none)
          variables.emplace(each.base, &variable);
      }
    return variables;
  }

  /// Throws where a channel is in other units than in the first view; warns where it has none.
  void check_units(const std::vector<std::string>& names) {
    for (std::uint32_t t = 0; t < views_[0]->tensors_.size(); ++t) {
      const auto first = measured(*views_[0], t);
      for (std::size_t i = 1; i < views_.size(); ++i)
        for (const auto& [base, variable] : measured(*views_[i], t)) {
          const auto known = first.find(base);
          if (known == first.end()) continue;
          const std::string one = units_of(*known->second), two = units_of(*variable);
          if (are_same_units(one, two)) continue;
          const std::string& tensor = views_[0]->tensors_[t].name;
          if (one.empty() || two.empty())
            warnings_.push_back(
                fmt::format("'{}' in the tensor '{}' is in '{}' in '{}', and has "
                            "no units in '{}'",
                            variable->name, tensor, one.empty() ? two : one,
                            names[one.empty() ? i : 0], names[one.empty() ? 0 : i]));
          else
            throw Error(ErrorCode::invalid_argument,
                        fmt::format("mix.{}: '{}' in the tensor '{}' is in '{}', and '{}' of '{}' "
                                    "in '{}'; convert one of them, or normalize both",
                                    names[i], variable->name, tensor, two, known->second->name,
                                    names[0], one));
        }
    }
  }

  /// The tensors, of which all components have the same; values that are given with samples one
  /// after the other.
  void take_tensors() {
    tensors_ = views_[0]->tensors_;
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      TensorSpec& tensor = tensors_[t];
      for (const auto& view : views_)
        if (view->tensors_[t].padded) {
          tensor.padded = true;
          tensor.pad = view->tensors_[t].pad;
        }
      c_strides(tensor.shape,
                tensor.type.itemsize);  // throws for tensors that exceed the address space
      if (tensor.values == nullptr) continue;
      auto values = std::make_shared<std::vector<std::byte>>();
      for (const auto& view : views_) {
        const std::vector<std::byte>& own = *view->tensors_[t].values;
        values->insert(values->end(), own.begin(), own.end());
      }
      tensor.values = std::move(values);
    }
    placements_ = views_[0]->placements_;  // for descriptions
    made_placements_ = views_[0]->made_placements_;
    coarsened_placements_ = views_[0]->coarsened_placements_;
  }

  void take_channels(const View& view) {
    const auto tensors = static_cast<std::uint32_t>(tensors_.size());
    FirstParts first{.sample = first_samples_[firsts_.size()]};
    first.variable = static_cast<std::uint32_t>(variables_.size());
    first.combination = static_cast<std::uint32_t>(combinations_.size());
    first.made = made_.append(view.made_, tensors, first.combination);
    variables_.insert(variables_.end(), view.variables_.begin(), view.variables_.end());
    stored_.insert(stored_.end(), view.stored_.begin(), view.stored_.end());
    for (const auto& [use, converter] : view.converters_)
      converters_.emplace(std::pair(use.first + (use.first < tensors ? 0 : first.combination),
                                    use.second + first.variable),
                          converter);
    for (const auto& [variable, normalization] : view.normalizations_)
      normalizations_.emplace(first.variable + variable, normalization);
    combinations_.insert(combinations_.end(), view.combinations_.begin(), view.combinations_.end());
    firsts_.push_back(first);
  }

  const MixSpec mix_;
  const std::vector<std::shared_ptr<const View>> views_;
  const MixSchedule schedule_;
  std::vector<std::int64_t> first_samples_;  // of each component; after them that of all
  std::vector<std::vector<std::int64_t>> first_positions_;  // per window dimension and component
  std::vector<FirstParts> firsts_;                          // of each component
  std::vector<std::string> warnings_;
};

std::shared_ptr<const View> make_mixed_view(MixSpec spec,
                                            std::vector<std::shared_ptr<const View>> views) {
  return std::make_shared<MixedView>(std::move(spec), std::move(views));
}

}  // namespace batchfs
