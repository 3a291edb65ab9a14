#pragma once
// The reader's side of a simulated device: its memory is the host's, its streams end when the test
// says so.

#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <vector>

#include "engine/base/error.h"
#include "gpu/reader/batch.h"
#include "gpu/reader/device.h"

namespace batchfs::reader {

class FakeDevice final : public Device {
 public:
  class Memory final : public DeviceMemory {
   public:
    Memory(int fd, std::uint64_t size)
        : mapping_(fd >= 0 ? Mapping::of_file(fd, size) : nullptr), own_(fd >= 0 ? 0 : size) {}
    std::byte* data() const override {
      return mapping_ ? const_cast<std::byte*>(mapping_->data()) : own_.data();
    }
    std::uint64_t size() const override { return mapping_ ? mapping_->size() : own_.size(); }

   private:
    std::shared_ptr<const Mapping> mapping_;
    mutable std::vector<std::byte> own_;
  };
  class Use final : public StreamUse {
   public:
    void note(std::uintptr_t) override { used = true; }
    std::atomic<bool> used{false};
  };

  static constexpr std::array<std::uint8_t, 16> kUuid{1, 2,  3,  4,  5,  6,  7,  8,
                                                      9, 10, 11, 12, 13, 14, 15, 16};

  int number() const override { return 0; }
  std::span<const std::uint8_t, 16> uuid() const override { return kUuid; }
  std::uint64_t free_memory() override { return 1 << 30; }
  std::shared_ptr<const DeviceMemory> map(int fd, std::uint64_t size) override {
    if (cannot_map) throw Error(ErrorCode::not_supported, "the driver maps nothing");
    ++maps;
    return std::make_shared<Memory>(fd, size);
  }
  std::shared_ptr<const DeviceMemory> allocate(std::uint64_t size) override {
    ++copies;
    return std::make_shared<Memory>(-1, size);
  }
  void upload(const DeviceMemory& to, std::uint64_t offset,
              std::span<const std::byte> bytes) override {
    std::memcpy(to.data() + offset, bytes.data(), bytes.size());
  }
  void download(const std::byte* from, std::span<std::byte> to) override {
    std::memcpy(to.data(), from, to.size());
  }
  std::shared_ptr<StreamUse> new_use() override { return std::make_shared<Use>(); }
  void after(const std::shared_ptr<StreamUse>& use, std::function<void()> release) override {
    if (!static_cast<Use&>(*use).used) return release();
    const std::lock_guard lock(mutex);
    waiting.push_back(std::move(release));
  }
  /// Ends the work on the batch that was released first. False if there is none.
  bool end_oldest() {
    std::function<void()> release;
    {
      const std::lock_guard lock(mutex);
      if (waiting.empty()) return false;
      release = std::move(waiting.front());
      waiting.erase(waiting.begin());
    }
    release();
    return true;
  }

  bool cannot_map = false;
  int maps = 0, copies = 0;
  std::mutex mutex;  // guards the members below
  std::vector<std::function<void()>> waiting;
};

}  // namespace batchfs::reader
