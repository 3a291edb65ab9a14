#include "tools/planning/split_plan.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "engine/base/counted.h"
#include "engine/base/strings.h"
#include "engine/view/spec.h"
#include "tools/cli/text.h"

namespace batchfs {

namespace {

std::string number_text(std::int64_t number) {
  return format_count(static_cast<std::uint64_t>(number));
}

/// Windows that remain before the split, those inside the part, and those that its gap removes.
struct SplitCounts {
  std::int64_t before = 0, windows = 0, gap = 0;
  Dropped dropped;  // before the split
};

SplitCounts counts_of(const View& view) {
  SplitCounts counts{all_windows(view), 0, 0, {}};
  for (const auto& [restriction, count] : dropped_windows(view)) {
    if (restriction == "split") {
      counts.windows = counts.before - count;
    } else if (restriction == "gap") {
      counts.gap = count;
      break;
    } else {
      counts.before -= count;
      counts.dropped.emplace_back(restriction, count);
    }
  }
  return counts;
}

std::string distance_text(const std::vector<LeakCheck::Distance>& distances, bool several_dims) {
  std::vector<std::string> texts;
  for (const LeakCheck::Distance& each : distances)
    texts.push_back(fmt::format("{}{}",
                                each.time.empty() ? counted(each.positions, "position") : each.time,
                                several_dims ? " along " + printable(each.dim) : ""));
  return join(texts, ", ");
}

std::string leak_text(const LeakCheck& check) {
  if (!check.made) return "leak check: not made, there are too many footprints\n";
  std::map<std::pair<std::string, std::string>, std::vector<LeakCheck::Distance>> by_parts;
  std::vector<std::pair<std::string, std::string>> pairs;
  bool several_dims = false;
  for (const LeakCheck::Distance& distance : check.distances) {
    auto& of_pair = by_parts[{distance.a, distance.b}];
    if (of_pair.empty()) pairs.emplace_back(distance.a, distance.b);
    of_pair.push_back(distance);
    several_dims = several_dims || distance.dim != check.distances.front().dim;
  }
  std::string text = fmt::format("leak check: {} shared", counted(check.shared, "position"));
  for (const auto& pair : pairs)
    text += fmt::format(", nearest {}-{} distance {}", printable(pair.first),
                        printable(pair.second), distance_text(by_parts[pair], several_dims));
  return text + "\n";
}

Json leak_json(const LeakCheck& check) {
  if (!check.made) return Json();
  Json distances = Json::array();
  for (const LeakCheck::Distance& each : check.distances) {
    distances.push_back(
        {{"parts", {each.a, each.b}}, {"dim", each.dim}, {"positions", each.positions}});
    if (!each.time.empty()) distances.back()["time"] = each.time;
  }
  return {{"shared", check.shared}, {"nearest", std::move(distances)}};
}

}  // namespace

SplitPlan plan_parts(const std::vector<std::shared_ptr<const View>>& parts) {
  SplitPlan plan;
  const View& first = *parts.front();
  plan.view = first.name().substr(0, first.name().size() - first.spec().part.name.size() - 1);
  plan.windows = all_windows(first);
  plan.dropped = counts_of(first).dropped;
  const bool folds = first.spec().split->folds > 0;
  for (std::size_t begin = 0; begin < parts.size();) {
    SplitPlan::Group group;
    const std::int64_t fold = parts[begin]->spec().part.fold;
    if (folds) group.fold = fold;
    std::vector<std::shared_ptr<const View>> here;
    group.straddling = counts_of(*parts[begin]).before;
    for (; begin < parts.size() && parts[begin]->spec().part.fold == fold; ++begin) {
      const View& view = *parts[begin];
      const SplitCounts counts = counts_of(view);
      here.push_back(parts[begin]);
      group.parts.push_back(
          {view.spec().part.name, view.samples(), view.batches(), counts.windows, counts.gap});
      group.straddling -= counts.windows;
    }
    group.leaks = check_leaks(here);
    plan.groups.push_back(std::move(group));
  }
  return plan;
}

Json split_json(const SplitPlan& plan, Json plans) {
  Json dropped = Json::object(), groups = Json::array();
  for (const auto& [restriction, count] : plan.dropped) dropped[restriction] = count;
  for (const SplitPlan::Group& group : plan.groups) {
    Json entry = Json::object();
    if (group.fold) entry["fold"] = *group.fold;
    for (const SplitPlan::Part& part : group.parts)
      entry["parts"][part.name] = {
          {"windows", part.windows}, {"gap", part.gap}, {"samples", part.samples}};
    entry["straddling"] = group.straddling;
    entry["leak_check"] = leak_json(group.leaks);
    groups.push_back(std::move(entry));
  }
  Json json = {{"view", plan.view}, {"windows", plan.windows}, {"dropped", std::move(dropped)}};
  if (groups.size() == 1 && !plan.groups.front().fold)
    json["split"] = std::move(groups[0]);
  else
    json["folds"] = std::move(groups);
  json["parts"] = std::move(plans);
  return json;
}

std::string split_text(const SplitPlan& plan, bool scanned) {
  std::string out = fmt::format(
      "View {}: {} in {}\n", printable(plan.view), counted(plan.windows, "window"),
      counted(static_cast<std::int64_t>(plan.groups.size() * plan.groups.front().parts.size()),
              "part"));
  for (const auto& [restriction, count] : plan.dropped)
    out += fmt::format("Not samples of any part: {} by {}\n", number_text(count), restriction);
  for (const SplitPlan::Group& group : plan.groups) {
    Table table({"part", "windows", "left out by the gap", scanned ? "samples" : "samples, at most",
                 "batches"});
    for (const SplitPlan::Part& part : group.parts)
      table.add({printable(part.name), number_text(part.windows), number_text(part.gap),
                 number_text(part.samples), number_text(part.batches)});
    table.add({"none", number_text(group.straddling), "", "", ""});
    out += "\n" + table.text(0) + leak_text(group.leaks);
  }
  out += "\nWindows of no part have positions of several. --part NAME shows the cost of one.\n";
  return out;
}

}  // namespace batchfs
