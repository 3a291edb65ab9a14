#include "engine/pipeline/chunks/chunk_reuse.h"

#include <iterator>

namespace batchfs {

void ChunkReuse::use(const ChunkKey& chunk, double bytes, double memory) {
  const auto [until, is_new] = joined_until_.try_emplace(chunk, 0);
  if (is_new || until->second <= batch_) {
    decoded_joined_ += bytes;
    until->second = batch_ + joined_;
  }
  if (const auto it = here_.find(chunk); it != here_.end()) {
    order_.splice(order_.end(), order_, it->second);
    return;
  }
  decoded_kept_ += bytes;
  order_.push_back({chunk, memory});
  here_[chunk] = std::prev(order_.end());
  memory_ += memory;
  while (memory_ > kept_ && !order_.empty()) {
    memory_ -= order_.front().memory;
    here_.erase(order_.front().key);
    order_.pop_front();
  }
}

}  // namespace batchfs
