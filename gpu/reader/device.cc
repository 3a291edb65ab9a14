#include "gpu/reader/device.h"

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/base/error.h"
#include "gpu/reader/cuda_driver.h"
#include "gpu/reader/process.h"

namespace batchfs::reader {

namespace {

using cuda::Driver;

/// Pinned bounce buffer for copies from the host: the pages of a batch belong to another process,
/// and pinning them anew for every batch costs more than this copy.
constexpr std::uint64_t kBounce = 16 << 20;

/// Makes the device's context current in this thread for a while.
class Current {
 public:
  Current(const Driver& driver, cuda::Context context) : driver_(driver) {
    pushed_ = driver.push(context) == 0;
  }
  ~Current() {
    cuda::Context previous;
    if (pushed_) driver_.pop(&previous);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  const Driver& driver_;
  bool pushed_;
};

class CudaDevice;

class MappedMemory final : public DeviceMemory {
 public:
  MappedMemory(std::shared_ptr<const CudaDevice> device, int fd, std::uint64_t size);
  ~MappedMemory() override { end(); }
  std::byte* data() const override { return reinterpret_cast<std::byte*>(address_); }
  std::uint64_t size() const override { return size_; }

 private:
  void end();

  const std::shared_ptr<const CudaDevice> device_;
  const std::uint64_t size_;
  cuda::Address address_ = 0;
  cuda::Handle handle_ = 0;
  bool has_handle_ = false, mapped_ = false;
};

class OwnMemory final : public DeviceMemory {
 public:
  OwnMemory(std::shared_ptr<CudaDevice> device, std::uint64_t size);
  ~OwnMemory() override;
  std::byte* data() const override { return reinterpret_cast<std::byte*>(address_); }
  std::uint64_t size() const override { return size_; }

 private:
  const std::shared_ptr<CudaDevice> device_;
  const std::uint64_t size_;
  cuda::Address address_ = 0;
};

class NotedStreams final : public StreamUse {
 public:
  void note(std::uintptr_t stream) override {
    const std::lock_guard lock(mutex_);
    if (std::find(streams_.begin(), streams_.end(), stream) == streams_.end())
      streams_.push_back(stream);
  }
  std::vector<std::uintptr_t> streams() {
    const std::lock_guard lock(mutex_);
    return streams_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::uintptr_t> streams_;
};

/// Releases that wait for streams, with a thread of their own: the last owner of a device may be
/// what the thread waits for.
struct Releases {
  struct Waiting {
    std::vector<cuda::Event> events;
    bool everything = false;  // all of the device's work
    std::function<void()> release;
  };
  std::mutex mutex;  // guards the members below
  std::condition_variable changed;
  std::deque<Waiting> waiting;
  std::vector<cuda::Event> spare;
  bool stopping = false;
};

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int number)
      : driver_(Driver::get()), number_(number), process_(this_process()) {
    int count = 0;
    driver_.check(driver_.device_get_count(&count), "be counted");
    if (number >= count)
      throw Error(ErrorCode::not_supported, "there is no GPU " + std::to_string(number) +
                                                ": the driver shows " + std::to_string(count) +
                                                (count == 1 ? " GPU" : " GPUs"));
    driver_.check(driver_.device_get(&device_, number), "be chosen");
    driver_.check(driver_.device_get_uuid(&uuid_, device_), "say its UUID");
    driver_.check(driver_.primary_retain(&context_, device_), "start");
    thread_ = std::thread([releases = releases_, &driver = driver_, context = context_] {
      run(*releases, driver, context);
    });
  }

  ~CudaDevice() override {
    if (this_process() != process_) {  // the thread and the driver are the parent's
      thread_.detach();
      return;
    }
    {
      const std::lock_guard lock(releases_->mutex);
      releases_->stopping = true;
      releases_->changed.notify_all();
    }
    if (thread_.get_id() == std::this_thread::get_id()) {
      const std::lock_guard lock(releases_->mutex);
      releases_->spare.clear();  // the events are destroyed with the context
      thread_.detach();
    } else {
      thread_.join();
    }
    {
      const Current current(driver_, context_);
      for (const auto& [size, address] : kept_) driver_.free(address);
      if (bounce_ != nullptr) driver_.free_host(bounce_);
      if (copies_ != nullptr) driver_.stream_destroy(copies_);
      for (const cuda::Event event : copied_)
        if (event != nullptr) driver_.event_destroy(event);
    }
    driver_.primary_release(device_);
  }

  int number() const override { return number_; }
  std::span<const std::uint8_t, 16> uuid() const override { return uuid_.bytes; }

  std::uint64_t free_memory() override {
    must_be_ours();
    const Current current(driver_, context_);
    std::size_t left = 0, all = 0;
    driver_.check(driver_.memory_info(&left, &all), "say how much memory it has");
    return left;
  }

  std::shared_ptr<const DeviceMemory> map(int fd, std::uint64_t size) override {
    must_be_ours();
    return std::make_shared<MappedMemory>(std::static_pointer_cast<CudaDevice>(shared_from_this()),
                                          fd, size);
  }
  std::shared_ptr<const DeviceMemory> allocate(std::uint64_t size) override {
    must_be_ours();
    return std::make_shared<OwnMemory>(std::static_pointer_cast<CudaDevice>(shared_from_this()),
                                       size);
  }

  void upload(const DeviceMemory& to, std::uint64_t offset,
              std::span<const std::byte> bytes) override {
    must_be_ours();
    const Current current(driver_, context_);
    const std::lock_guard lock(copying_);
    if (copies_ == nullptr)
      driver_.check(driver_.stream_create(&copies_, cuda::kStreamNonBlocking), "make a stream");
    for (cuda::Event& event : copied_)
      if (event == nullptr)
        driver_.check(
            driver_.event_create(&event, cuda::kEventBlockingSync | cuda::kEventDisableTiming),
            "make an event");
    if (bounce_ == nullptr)
      driver_.check(driver_.allocate_host(&bounce_, 2 * kBounce), "allocate pinned memory");
    const cuda::Address base = reinterpret_cast<cuda::Address>(to.data()) + offset;
    for (std::uint64_t at = 0, turn = 0; at < bytes.size(); at += kBounce, ++turn) {
      const std::uint64_t size = std::min<std::uint64_t>(kBounce, bytes.size() - at);
      auto* half = static_cast<std::byte*>(bounce_) + turn % 2 * kBounce;
      if (turn >= 2) driver_.check(driver_.event_synchronize(copied_[turn % 2]), "copy a batch");
      std::memcpy(half, bytes.data() + at, size);
      driver_.check(driver_.copy_to_device(base + at, half, size, copies_), "copy a batch");
      driver_.check(driver_.event_record(copied_[turn % 2], copies_), "copy a batch");
    }
    driver_.check(driver_.stream_synchronize(copies_), "copy a batch");
  }

  void download(const std::byte* from, std::span<std::byte> to) override {
    must_be_ours();
    const Current current(driver_, context_);
    if (!to.empty())
      driver_.check(
          driver_.copy_to_host(to.data(), reinterpret_cast<cuda::Address>(from), to.size()),
          "copy a tensor");
  }

  std::shared_ptr<StreamUse> new_use() override { return std::make_shared<NotedStreams>(); }

  void after(const std::shared_ptr<StreamUse>& use, std::function<void()> release) override {
    if (this_process() != process_) return;
    Releases::Waiting entry{{}, false, std::move(release)};
    const std::vector<std::uintptr_t> streams = static_cast<NotedStreams&>(*use).streams();
    if (streams.empty()) return entry.release();
    const Current current(driver_, context_);
    for (const std::uintptr_t stream : streams) {
      // 2 is the default stream of an unknown thread.
      if (stream == StreamUse::kAny || stream == 2) {
        entry.everything = true;
        continue;
      }
      const cuda::Event event = take_event();
      const auto on = stream <= 1 ? cuda::kLegacyStream : reinterpret_cast<cuda::Stream>(stream);
      if (event == nullptr || driver_.event_record(event, on) != 0) entry.everything = true;
      if (event != nullptr) entry.events.push_back(event);
    }
    const std::lock_guard lock(releases_->mutex);
    releases_->waiting.push_back(std::move(entry));
    releases_->changed.notify_all();
  }

  const Driver& driver() const { return driver_; }
  cuda::Context context() const { return context_; }
  bool ours() const { return this_process() == process_; }

  /// Returns released memory of this size, or null.
  cuda::Address take_kept(std::uint64_t size) {
    const std::lock_guard lock(keeping_);
    const auto it = kept_.find(size);
    if (it == kept_.end()) return 0;
    const cuda::Address address = it->second;
    kept_.erase(it);
    return address;
  }
  void keep(std::uint64_t size, cuda::Address address) {
    const std::lock_guard lock(keeping_);
    kept_.emplace(size, address);
  }
  /// Returns all kept memory to the driver. False if there is none.
  bool drop_kept() {
    const std::lock_guard lock(keeping_);
    for (const auto& [size, address] : kept_) driver_.free(address);
    const bool had = !kept_.empty();
    kept_.clear();
    return had;
  }

 private:
  void must_be_ours() const {
    if (!ours())
      throw Error(ErrorCode::not_supported,
                  "a GPU cannot be used by a child of the process that opened it: read in that "
                  "process, or start workers "
                  "with \"spawn\"");
  }

  cuda::Event take_event() {
    {
      const std::lock_guard lock(releases_->mutex);
      if (!releases_->spare.empty()) {
        const cuda::Event event = releases_->spare.back();
        releases_->spare.pop_back();
        return event;
      }
    }
    cuda::Event event = nullptr;
    return driver_.event_create(&event, cuda::kEventBlockingSync | cuda::kEventDisableTiming) == 0
               ? event
               : nullptr;
  }

  static void run(Releases& releases, const Driver& driver, cuda::Context context) {
    driver.push(context);
    for (;;) {
      Releases::Waiting entry;
      {
        std::unique_lock lock(releases.mutex);
        releases.changed.wait(lock, [&] { return releases.stopping || !releases.waiting.empty(); });
        if (releases.waiting.empty()) break;
        entry = std::move(releases.waiting.front());
        releases.waiting.pop_front();
      }
      for (const cuda::Event event : entry.events) driver.event_synchronize(event);
      if (entry.everything) driver.synchronize();
      {
        const std::lock_guard lock(releases.mutex);
        releases.spare.insert(releases.spare.end(), entry.events.begin(), entry.events.end());
      }
      entry.release();
    }
    for (const cuda::Event event : releases.spare) driver.event_destroy(event);
  }

  const Driver& driver_;
  const int number_;
  const pid_t process_;
  cuda::DeviceNumber device_ = 0;
  cuda::Uuid uuid_{};
  cuda::Context context_ = nullptr;
  const std::shared_ptr<Releases> releases_ = std::make_shared<Releases>();
  std::thread thread_;

  std::mutex copying_;  // guards the members below
  cuda::Stream copies_ = nullptr;
  cuda::Event copied_[2] = {};
  void* bounce_ = nullptr;

  std::mutex keeping_;
  std::multimap<std::uint64_t, cuda::Address> kept_;  // guarded by keeping_
};

MappedMemory::MappedMemory(std::shared_ptr<const CudaDevice> device, int fd, std::uint64_t size)
    : device_(std::move(device)), size_(size) {
  const Driver& driver = device_->driver();
  const Current current(driver, device_->context());
  try {
    driver.check(
        driver.import_handle(&handle_, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)),
                             cuda::kPosixDescriptor),
        "take over the memory of batches");
    has_handle_ = true;
    driver.check(driver.reserve(&address_, size_, 0, 0, 0), "reserve addresses");
    driver.check(driver.map(address_, size_, 0, handle_, 0), "map the memory of batches");
    mapped_ = true;
    // Read-only, if the driver supports it.
    cuda::AccessDescription access{cuda::kLocationDevice, device_->number(),
                                   static_cast<int>(cuda::kRead)};
    if (driver.set_access(address_, size_, &access, 1) != 0) {
      access.flags = static_cast<int>(cuda::kReadWrite);
      driver.check(driver.set_access(address_, size_, &access, 1), "open the memory of batches");
    }
  } catch (...) {
    end();
    throw;
  }
}

void MappedMemory::end() {
  if (!device_->ours()) return;
  const Driver& driver = device_->driver();
  const Current current(driver, device_->context());
  if (mapped_) driver.unmap(address_, size_);
  if (address_ != 0) driver.free_address(address_, size_);
  if (has_handle_) driver.release_handle(handle_);
}

OwnMemory::OwnMemory(std::shared_ptr<CudaDevice> device, std::uint64_t size)
    : device_(std::move(device)), size_(std::max<std::uint64_t>(size, 1)) {
  address_ = device_->take_kept(size_);
  if (address_ != 0) return;
  const Driver& driver = device_->driver();
  const Current current(driver, device_->context());
  cuda::Result result = driver.allocate(&address_, size_);
  if (result == cuda::kOutOfMemory && device_->drop_kept())
    result = driver.allocate(&address_, size_);
  driver.check(result, "allocate memory for a batch");
}

OwnMemory::~OwnMemory() {
  if (device_->ours()) device_->keep(size_, address_);
}

}  // namespace

std::shared_ptr<Device> Device::open(const std::string& name) {
  int number = 0;
  if (name != "cuda") {
    const char* end = name.data() + name.size();
    const bool is_cuda = name.starts_with("cuda:");
    const auto [stop, error] = is_cuda ? std::from_chars(name.data() + 5, end, number)
                                       : std::from_chars_result{end, std::errc()};
    if (!is_cuda || name.size() == 5 || error != std::errc() || stop != end || number < 0)
      throw Error(ErrorCode::invalid_argument,
                  "there is no device '" + name + "': it is cpu, cuda or cuda:N");
  }
  return std::make_shared<CudaDevice>(number);
}

}  // namespace batchfs::reader
