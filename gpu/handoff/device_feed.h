#pragma once
// A feed of DeviceDelivery: one rank's stream and the requests for its batches.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "gpu/handoff/device_delivery.h"

namespace batchfs::handoff {

struct DeviceDelivery::Feed {
  std::shared_ptr<const View> view;
  std::int64_t rank = 0, world = 1;

  // Guarded by the delivery's mutex.
  struct Place {
    std::vector<Waiting> waiting;  // empty: the batch is passed over
  };
  std::deque<Place> asked;  // requested of the stream, not yet taken
  std::int64_t next = 0;    // place of asked.front()
  // delivered, and perhaps still held
  std::map<std::int64_t, std::weak_ptr<const DeliveredBatch>> given;
  std::size_t held = 0;             // slots
  std::size_t slots = kUsualSlots;  // before the stream exists
  std::uint64_t memory = 0;         // reserved from the delivery's memory
  bool left = false;                // its reader started a new stream
  bool dead = false;                // delivers nothing more
  Fallback why_dead = Fallback::failed;
  std::uint64_t ended_before = 0;  // value of ended_ when it died
  std::chrono::steady_clock::time_point used = std::chrono::steady_clock::now();
  bool stopping = false;
  DeliveredBatch::Memory memory_piece;  // of the stream

  /// Held while batches are taken, and by the end. Lock order: before the delivery's mutex.
  std::mutex serving;
  std::unique_ptr<SlotStream> stream;  // set and destroyed with both held
  std::thread maker;                   // of the stream; ends when there is one

  std::int64_t end() const { return next + static_cast<std::int64_t>(asked.size()); }
  bool is_of(const BatchRequest& request) const {
    return view == request.view && rank == request.rank && world == request.world;
  }
  bool idle() const {
    return held == 0 && std::all_of(asked.begin(), asked.end(),
                                    [](const Place& p) { return p.waiting.empty(); });
  }
  /// Nobody reads it.
  bool must_end(std::chrono::steady_clock::time_point now,
                std::chrono::milliseconds idle_time) const {
    return idle() && (left || now - used > idle_time);
  }
  std::shared_ptr<DeliveredBatch> batch_in(const SlotStream::Slot& slot) const {
    auto batch = std::make_shared<DeliveredBatch>();
    if (!slot.why_host.empty()) batch->fallback = Fallback::not_decoded;
    batch->memories.push_back(memory_piece);
    for (const SlotStream::Tensor& tensor : slot.tensors)
      batch->tensors.push_back({0, tensor.offset, tensor.bytes});
    return batch;
  }
};

}  // namespace batchfs::handoff
