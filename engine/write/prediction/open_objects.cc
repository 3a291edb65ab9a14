#include "engine/write/prediction/open_objects.h"

namespace batchfs {

void OpenObjects::note_parts(const ObjectKey& key, std::set<std::int64_t> samples) {
  const std::lock_guard lock(mutex_);
  in_parts_[key].merge(samples);
}

std::optional<OpenObjects::Taken> OpenObjects::add(const ObjectKey& key, std::int64_t sample,
                                                   Buffer values, std::uint32_t expected) {
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] = open_.try_emplace(key);
  Open& open = found->second;
  if (is_new) {
    open.age = ++last_age_;
    by_age_.emplace(open.age, key);
  }
  const auto parts = in_parts_.find(key);
  held_ += values.size();
  if (const auto before = open.samples.find(sample); before != open.samples.end()) {
    held_ -= before->second.size();
    before->second = std::move(values);
  } else {
    held_ += kSampleBytes;
    open.samples.emplace(sample, std::move(values));
    if (parts != in_parts_.end() && parts->second.contains(sample)) ++open.in_parts_too;
  }
  std::size_t all = open.samples.size();
  if (parts != in_parts_.end()) all += parts->second.size() - open.in_parts_too;
  if (all != expected) return std::nullopt;
  if (parts != in_parts_.end()) in_parts_.erase(parts);
  return take(found);
}

std::optional<OpenObjects::Taken> OpenObjects::take_excess() {
  const std::lock_guard lock(mutex_);
  if (held_ <= memory_ || open_.empty()) return std::nullopt;
  const Iterator found = oldest();
  std::set<std::int64_t>& parts = in_parts_[found->first];
  for (const auto& [sample, values] : found->second.samples) parts.insert(sample);
  return take(found);
}

std::optional<OpenObjects::Taken> OpenObjects::take_oldest() {
  const std::lock_guard lock(mutex_);
  if (open_.empty()) return std::nullopt;
  return take(oldest());
}

OpenObjects::Iterator OpenObjects::oldest() { return open_.find(by_age_.begin()->second); }

OpenObjects::Taken OpenObjects::take(Iterator found) {
  Taken taken{found->first, std::move(found->second.samples)};
  for (const auto& [sample, values] : taken.samples) held_ -= values.size() + kSampleBytes;
  by_age_.erase(found->second.age);
  open_.erase(found);
  return taken;
}

}  // namespace batchfs
