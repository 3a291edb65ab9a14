#pragma once
// Mode client: runs the programs that the server makes, in this process, on the reader's device.
// See gpu/handoff/protocol.h. A thread waits for Setups; each series of programs has two, one that
// starts programs and one that waits for their end, so that batches are made while the consumer
// computes.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <sys/types.h>

#include "gpu/reader/cuda_decoder.h"
#include "gpu/reader/device.h"

namespace batchfs::reader {

class Decoders {
 public:
  /// Owns `channel`, where Setups come.
  Decoders(const CudaDecoderTable& table, int channel, std::shared_ptr<Device> device);
  /// Programs that run are waited for. Batches stay valid.
  ~Decoders();
  Decoders(const Decoders&) = delete;
  Decoders& operator=(const Decoders&) = delete;

  /// The batch area of the series `id`; null if there was none. Releases earlier series.
  std::shared_ptr<const DeviceMemory> memory(std::uint64_t id);
  /// Why programs are not run here any more; else empty.
  std::string why_failed() const;

 private:
  class Decoder;
  class Memory;
  class Series;

  void receive();
  void failed(const std::string& why);

  const CudaDecoderTable& table_;
  const int channel_;
  const std::shared_ptr<Device> device_;
  const pid_t process_;
  mutable std::mutex mutex_;  // guards the members below
  std::map<std::uint64_t, std::unique_ptr<Series>> series_;
  std::string why_failed_;
  std::thread thread_;
};

}  // namespace batchfs::reader
