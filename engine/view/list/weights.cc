#include "engine/view/list/weights.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "engine/base/counted.h"
#include "engine/view/list/npy_reader.h"
#include "engine/view/order/order.h"

namespace batchfs {

Draws::Draws(std::vector<double> weights, const std::string& path) : sums_(std::move(weights)) {
  const auto wrong = [](double weight) { return !(weight >= 0 && std::isfinite(weight)); };
  if (const auto it = std::find_if(sums_.begin(), sums_.end(), wrong); it != sums_.end())
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{}: sample {} has the weight {}; a weight is a number from 0 on, and {} "
                    "of {} {} not",
                    path, it - sums_.begin(), *it, std::count_if(sums_.begin(), sums_.end(), wrong),
                    counted(samples(), "weight"),
                    std::count_if(sums_.begin(), sums_.end(), wrong) == 1 ? "is" : "are"));
  // Compensated, after A. Neumaier (1974), in the order of the samples.
  double sum = 0, rest = 0, before = 0;
  bool any = false;
  for (std::size_t s = 0; s < sums_.size(); ++s) {
    const double weight = sums_[s], next = sum + weight;
    rest += sum >= weight ? (sum - next) + weight : (weight - next) + sum;
    sum = next;
    before = std::max(before, sum + rest);
    sums_[s] = before;
    if (weight == 0) continue;
    any = true;
    last_ = static_cast<std::int64_t>(s);
  }
  if (!any)
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: no sample is left: each of {} is 0",
                                                         path, counted(samples(), "weight")));
  if (!std::isfinite(sum))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: the sum of the weights is beyond what a float64 holds", path));
}

std::int64_t Draws::sample(std::int64_t j, std::int64_t draws, double u) const {
  const double at = (static_cast<double>(j) + u) / static_cast<double>(draws) * sums_.back();
  const auto it = std::upper_bound(sums_.begin(), sums_.end(), at);
  return std::min<std::int64_t>(it - sums_.begin(), last_);
}

double Draws::uniform(std::uint64_t seed, std::int64_t epoch) {
  // mix(mix(seed + GOLDEN) + epoch + GOLDEN) / 2^64
  const std::uint64_t bits = lane_seed(lane_seed(seed, 0) + static_cast<std::uint64_t>(epoch), 0);
  return std::ldexp(static_cast<double>(bits), -64);
}

std::optional<WeightsSpec> parse_weights(const JsonRef& samples, const FilePath& file_path) {
  const auto weights = samples.find("weights");
  if (!weights) return std::nullopt;
  WeightsSpec spec;
  spec.path = weights->path();
  if (weights->is_object() && !weights->find("file")) {
    weights->allow_only({"column", "variable", "file"});
    const auto column = weights->find("column"), variable = weights->find("variable");
    if (column.has_value() == variable.has_value())
      throw weights->error("name one of \"column\", \"variable\" and \"file\"");
    if (column) {
      const auto list = samples.find("list");
      const JsonRef file = list && list->is_object() ? list->at("file") : list.value_or(*column);
      if (!list || !file.string().ends_with(".csv"))
        throw column->error("columns are those of a .csv file in \"list\"");
      spec.column = column->string();
    } else {
      spec.variable = variable->string();
    }
    return spec;
  }
  if (weights->is_object())
    for (const char* key : {"column", "variable"})
      if (const auto other = weights->find(key))
        throw other->error("name one of \"column\", \"variable\" and \"file\"");
  spec.file = parse_file(*weights, file_path);
  if (!spec.file.name.ends_with(".npy"))
    throw weights->error(
        fmt::format("'{}' is not a .npy file; write {{\"column\": NAME}} for a column of \"list\", "
                    "{{\"variable\": "
                    "NAME}} for a variable of the store",
                    spec.file.name));
  return spec;
}

std::vector<double> read_weights(FileSpec& spec, std::int64_t samples) {
  NamedFile file(spec.place);
  const NpyHeader header = read_npy_header(file);
  const std::int64_t count = header.elements();
  if (header.shape.size() != 1 || count != samples)
    throw file.error(
        fmt::format("{}: the array has {} and {}; there are {}, and each needs one weight",
                    spec.path, counted(static_cast<std::int64_t>(header.shape.size()), "dimension"),
                    counted(count, "number"), counted(samples, "sample")));
  std::vector<double> weights(static_cast<std::size_t>(count));
  read_npy_numbers(file, header, [&](std::int64_t first, std::span<const double> values) {
    std::copy(values.begin(), values.end(), weights.begin() + first);
  });
  check_digest(spec, file.digest());
  spec.digest = file.digest();
  return weights;
}

}  // namespace batchfs
