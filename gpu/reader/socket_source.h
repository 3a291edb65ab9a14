#pragma once
// Batches from the hand-off's socket, modes shm, server and client. See gpu/handoff/protocol.h.

#include <atomic>
#include <deque>
#include <map>
#include <span>
#include <vector>

#include "engine/base/descriptor.h"
#include "gpu/handoff/protocol.h"
#include "gpu/reader/decoders.h"
#include "gpu/reader/fallbacks.h"
#include "gpu/reader/link.h"
#include "gpu/reader/source.h"

namespace batchfs::reader {

class SocketSource final : public Source {
 public:
  struct Options {
    std::string view;
    std::int64_t rank = 0, world = 1;
    handoff::Mode mode = handoff::Mode::automatic;
    std::shared_ptr<Device> device;  // wanted device, if possible; null for none
    std::uint64_t device_memory =
        0;  // bytes that a decoder here may take; 0: a quarter of the free memory
    const CudaDecoderTable* decoder = nullptr;  // null: the table of the library of decoders
  };
  /// Sends Hello on a connected socket, which it owns. Throws the server's refusal; Lost if it does
  /// not answer within ten seconds.
  SocketSource(int socket, const Options& options, const Interrupted& interrupted);

  const std::shared_ptr<const Schema>& schema() const override { return schema_; }
  const std::shared_ptr<const Coordinates>& coordinates() const override { return coordinates_; }
  handoff::ReadingRecord reading() const override { return reading_; }
  const char* mode() const override;
  std::string why_copied() const override;
  void start(const Series& series, std::uint32_t ahead) override;
  std::shared_ptr<Batch> next(const Interrupted& interrupted) override;
  std::shared_ptr<Batch> get(std::int64_t epoch, std::int64_t batch,
                             const Interrupted& interrupted) override;

 private:
  /// A batch, its error, or (neither) the end of the stream.
  struct Answer {
    std::shared_ptr<Batch> batch;
    std::exception_ptr error;
  };
  std::span<const std::byte> receive(std::vector<Descriptor>& descriptors,
                                     const Interrupted& interrupted, int milliseconds = -1);
  bool receive_answer(const Interrupted& interrupted, int milliseconds = -1);
  void wait_for_returns(const Interrupted& interrupted);
  std::shared_ptr<Batch> batch_of(std::span<const std::byte> bytes,
                                  std::span<const Descriptor> descriptors);

  std::shared_ptr<Link> link_;
  std::shared_ptr<const Windows> windows_in(std::span<const std::byte> bytes,
                                            std::span<const Descriptor> descriptors,
                                            std::int64_t samples) const;
  std::shared_ptr<const Schema> schema_;
  std::shared_ptr<const Coordinates> coordinates_;  // null: the server is of version 1
  handoff::ReadingRecord reading_;
  std::vector<std::byte> buffer_;
  /// A piece of memory, on the host or on the device.
  struct Piece {
    std::uint64_t id = 0;
    std::shared_ptr<const Mapping> host;
    std::shared_ptr<const DeviceMemory> device;
  };
  Piece piece_of(const handoff::MemoryRecord& record, std::span<const Descriptor> descriptors,
                 std::size_t& next_descriptor);

  const std::shared_ptr<Device> device_;
  handoff::Mode mode_ = handoff::Mode::shm;
  std::unique_ptr<Decoders> decoders_;         // in mode client
  std::string why_not_client_;                 // the GPU has no kernel; else empty
  std::map<handoff::MemoryKind, Piece> kept_;  // pieces that are used again: the last of each kind
  Fallbacks fallbacks_;                        // of batches that were wanted on a device
  std::uint64_t stream_ = 0, last_request_ = 0;
  std::uint64_t received_ = 0;           // answers of the stream
  std::uint32_t ahead_ = 0, depth_ = 0;  // wanted ahead; sent to the server
  bool ended_ = true;
  std::deque<Answer> arrived_;                // of the stream, not yet taken
  std::map<std::uint64_t, Answer> answered_;  // of requests
  /// Batches of streams that are taken and not released; of these, those that the consumer has
  /// released and a GPU still works on.
  struct Held {
    std::atomic<std::uint32_t> batches{0}, returning{0};
  };
  const std::shared_ptr<Held> held_ = std::make_shared<Held>();
  /// The number for the present stream alone.
  std::shared_ptr<std::atomic<std::uint32_t>> held_of_stream_;
};

}  // namespace batchfs::reader
