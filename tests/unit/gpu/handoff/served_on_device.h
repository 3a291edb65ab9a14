#pragma once
// A server of batches in the memory of a simulated device: a memory file, so the readers' view can
// be checked on any machine.

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "gpu/handoff/device_delivery.h"
#include "gpu/handoff/packed_format.h"
#include "tests/unit/gpu/handoff/client.h"
#include "tests/unit/gpu/handoff/fake_device.h"

namespace batchfs::handoff {

/// Counters over all streams of a test.
struct Device {
  std::atomic<int> streams{0}, alive{0}, taken{0}, released{0};
  std::atomic<bool> fail{false}, refuse{false};
  std::atomic<std::int64_t> bad_place{-1}, undecoded_place{-1};
  std::atomic<std::uint64_t> needed{0};  // minimum bytes to make a stream
  std::atomic<std::uint32_t> slots{3};
  std::mutex mutex;                   // guards the members below
  std::vector<std::uint64_t> memory;  // of each stream
  std::uint64_t last_memory() {
    const std::lock_guard lock(mutex);
    return memory.empty() ? 0 : memory.back();
  }
};

/// Batches made by the view's engine, in slots of a memory file. Needs a free slot like a GPU's
/// stream.
class FakeStream final : public SlotStream {
 public:
  static constexpr std::uint64_t kSlotBytes = 4096;

  FakeStream(Device& device, Engine& engine, BatchRequest first, std::uint64_t memory)
      : device_(device),
        engine_(engine),
        request_(std::move(first)),
        memory_(memory),
        slots_(device.slots),
        file_(::memfd_create("slots", MFD_CLOEXEC)) {
    if (device_.refuse || memory < device_.needed)
      throw Error(ErrorCode::no_memory, "there is no room");
    if (::ftruncate(file_, static_cast<off_t>(size())) != 0) throw std::runtime_error("ftruncate");
    for (std::uint32_t slot = 0; slot < slots(); ++slot) free_.insert(slot);
    ++device_.streams;
    ++device_.alive;
    const std::lock_guard lock(device_.mutex);
    device_.memory.push_back(memory);
  }
  ~FakeStream() override {
    ::close(file_);
    --device_.alive;
  }

  std::optional<Slot> try_next() override {
    const std::lock_guard lock(mutex_);
    if (free_.empty() && !stopped_) return std::nullopt;
    if (stopped_) throw Error(ErrorCode::interrupted, "the stream was stopped");
    if (device_.fail) throw Error(ErrorCode::io, "the device has failed");
    const std::uint32_t slot = *free_.begin();
    BatchRequest request = request_;
    const std::int64_t of_rank = request.view->rank_batches(request.rank, request.world);
    if (++request_.batch == of_rank) {
      request_.batch = 0;
      ++request_.epoch;
    }
    if (request.batch == device_.bad_place)
      throw Error(ErrorCode::corrupt, "this batch cannot be made");
    if (request.batch == device_.undecoded_place)
      throw Error(ErrorCode::not_supported, "no GPU decodes this");
    free_.erase(slot);
    request.format = &packed_format();
    const auto batch = engine_.open(request);
    const std::vector<Dims> shapes = request.view->shapes(request.global_batch());
    const std::uint64_t bytes = static_cast<std::uint64_t>(element_count(shapes[0])) *
                                request.view->tensors()[0].type.itemsize;
    EXPECT_EQ(::pwrite(file_, batch->files[0].data(), bytes, static_cast<off_t>(slot * kSlotBytes)),
              static_cast<ssize_t>(bytes));
    ++device_.taken;
    return Slot{{{slot * kSlotBytes, bytes}},
                [this, slot] {
                  const std::lock_guard again(mutex_);
                  ++device_.released;
                  free_.insert(slot);
                  if (changed_) changed_();
                },
                {}};
  }
  void on_change(std::function<void()> changed) override {
    const std::lock_guard lock(mutex_);
    changed_ = std::move(changed);
  }
  bool broken() const override { return device_.fail; }
  void stop() override {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    if (changed_) changed_();
  }
  std::uint32_t slots() const override { return slots_; }
  int fd() const override { return file_; }
  std::uint64_t size() const override { return slots() * kSlotBytes; }
  std::uint64_t memory() const override { return memory_; }

 private:
  Device& device_;
  Engine& engine_;
  BatchRequest request_;
  const std::uint64_t memory_;
  const std::uint32_t slots_;
  const int file_;
  std::mutex mutex_;
  std::function<void()> changed_;
  std::set<std::uint32_t> free_;
  bool stopped_ = false;
};

/// A server with a simulated device: views named v0, v1, ... with ten batches of one time step.
class ServedOnDevice {
 public:
  static constexpr std::uint64_t kMemory = 1 << 20;

  explicit ServedOnDevice(int views = 1,
                          std::chrono::milliseconds idle_time = std::chrono::milliseconds(200),
                          bool one_reader = false, std::uint64_t device_memory = kMemory)
      : engine({.threads = 2, .memory = 64 << 20}, log),
        host(engine),
        delivery({.uuid = reader::FakeDevice::kUuid,
                  .memory = device_memory,
                  .idle_time = idle_time,
                  .one_reader = one_reader,
                  .make_stream =
                      [this](const BatchRequest& first, std::uint64_t memory) {
                        return std::make_unique<FakeStream>(device, engine, first, memory);
                      },
                  .workers = &engine.executor(),
                  .timers = &timers},
                 host, engine.counters(), log),
        directory(temporary_directory()) {
    HandoffServer::Options options;
    for (int i = 0; i < views; ++i)
      options.views.push_back(data.view(
          R"({"name": "v)" + std::to_string(i) +
          R"(", "select": {"time": {"from": "#0", "to": "#10"}}, "window": {"time": 1}, "batch": 1, "epochs": 3})"));
    options.deliveries = {&delivery, &host};
    server = std::make_unique<HandoffServer>(std::move(options), Listener(directory + "/s"), log);
  }
  ~ServedOnDevice() {
    server = nullptr;
    ::rmdir(directory.c_str());
  }
  std::string path() const { return directory + "/s"; }
  std::uint64_t from_host(DeviceDelivery::Fallback why) const {
    return delivery.statistics().fallbacks[static_cast<std::size_t>(why)];
  }

  FakeData data{10, 4, 6};
  Log log;
  Device device;
  Engine engine;
  HostDelivery host;
  TimerThread timers;
  DeviceDelivery delivery;
  std::string directory;
  std::unique_ptr<HandoffServer> server;
};

}  // namespace batchfs::handoff
