// What a build without CUDA has in place of device_decoder.cu: no device, and why.

#include "engine/base/error.h"
#include "gpu/device_decoder.h"

namespace batchfs::gpu {

struct DeviceDecoder::Impl {};

namespace {

[[noreturn]] void refuse() { throw Error(ErrorCode::not_supported, why_no_device()); }

}  // namespace

std::string why_no_device() { return "this batchfs was built without CUDA"; }
int device_count() { return 0; }
std::string device_name(int) { refuse(); }

PinnedBuffer::PinnedBuffer(std::size_t) { refuse(); }
PinnedBuffer::~PinnedBuffer() = default;

DeviceDecoder::DeviceDecoder(int, Timing) { refuse(); }
DeviceDecoder::~DeviceDecoder() = default;
void DeviceDecoder::start(const DecodePlan&, const std::byte*, std::size_t, std::size_t) { refuse(); }
std::span<const std::uint32_t> DeviceDecoder::finish() { refuse(); }
void* DeviceDecoder::target() const { refuse(); }
void DeviceDecoder::read(std::size_t, std::span<std::byte>) const { refuse(); }
StageTimes DeviceDecoder::times() const { refuse(); }
std::size_t DeviceDecoder::memory() const { refuse(); }

}  // namespace batchfs::gpu
