// Replaces the .cu files in a build without CUDA: reports no device, and why.

#include "engine/base/error.h"
#include "gpu/stream/cuda_devices.h"
#include "gpu/stream/device_runner.h"
#include "gpu/stream/slot_memory.h"

namespace batchfs::gpu {

struct DeviceRunner::Impl {};
struct SlotMemory::Impl {};

namespace {

[[noreturn]] void refuse() { throw Error(ErrorCode::not_supported, why_no_device()); }

}  // namespace

std::string why_no_device() { return "this batchfs was built without CUDA"; }
int device_count() { return 0; }
std::string device_name(int) { refuse(); }
std::uint64_t free_device_memory(int) { refuse(); }
std::uint64_t total_device_memory(int) { refuse(); }
std::array<std::uint8_t, 16> device_uuid(int) { refuse(); }
std::string why_no_kernel_for(int) { refuse(); }

PinnedBuffer::PinnedBuffer(std::size_t) { refuse(); }
PinnedBuffer::~PinnedBuffer() = default;
PinnedMapping::PinnedMapping(void*, std::size_t) { refuse(); }
PinnedMapping::~PinnedMapping() = default;

DeviceRunner::DeviceRunner(const Options&, std::span<const Conversion>,
                           std::span<const std::byte>) {
  refuse();
}
DeviceRunner::~DeviceRunner() = default;
void DeviceRunner::start(const Program&) { refuse(); }
std::vector<std::uint32_t> DeviceRunner::finish(std::uint64_t) { refuse(); }
void DeviceRunner::stop() {}
void DeviceRunner::released(std::uint32_t, void*) { refuse(); }
void DeviceRunner::upload(std::uint64_t, std::span<const std::byte>) { refuse(); }
void DeviceRunner::download(std::uint64_t, std::span<std::byte>) const { refuse(); }
std::uint64_t DeviceRunner::memory() const { refuse(); }

SlotMemory::SlotMemory(int, std::size_t) { refuse(); }
SlotMemory SlotMemory::import_fd(int, int, std::size_t) { refuse(); }
SlotMemory::~SlotMemory() = default;
SlotMemory::SlotMemory(SlotMemory&&) noexcept = default;
SlotMemory& SlotMemory::operator=(SlotMemory&&) noexcept = default;
void* SlotMemory::data() const { refuse(); }
std::size_t SlotMemory::size() const { refuse(); }
int SlotMemory::export_fd() const { refuse(); }

}  // namespace batchfs::gpu
