#pragma once
// A view's batches, from the best source available: over the hand-off's socket, else from the files
// of the mount. The C interface and the Python package wrap this.
//
//   auto reader = Reader::open({.place = "/mnt/era5/views/train", .rank = 1, .world = 4});
//   reader->start({.epoch = 0});
//   while (auto batch = reader->next()) ...
//
// Thread-safe: calls wait for each other. After fork(), the child's first call opens its own
// connection, at the same position.

#include <memory>
#include <mutex>
#include <string>

#include "gpu/reader/source.h"

namespace batchfs::reader {

struct ReaderOptions {
  /// A mount (DIR), a view's directory in it (DIR/views/NAME), or a socket of `batchfs serve`.
  std::string place;
  std::string view;  // required if the place has several
  std::int64_t rank = 0, world = 1;
  /// Batches that are prefetched for the reader, beyond the server's own prefetching.
  std::uint32_t ahead = 2;
  /// "auto": the hand-off if it can be reached, else files; "shm", "server": the hand-off, with
  /// batches that the server makes in host or in device memory; "client": the same, with batches
  /// that are decoded here, on the device; "files".
  std::string mode = "auto";
  /// Device of the batches; null: host memory. Batches that come in host memory are copied to it.
  std::shared_ptr<Device> device;
  /// Bytes of it that decoding here may take; 0: a quarter of the free memory, at most 24 GiB.
  std::uint64_t device_memory = 0;
  Interrupted interrupted;
};

/// Where in an epoch a reader starts. All ranks together read the epoch's batches from `done` on:
/// rank R of W gets done + R, done + R + W, ... Worker w of V (processes that share a rank's work)
/// gets each V-th of these.
struct Position {
  std::int64_t epoch = 0;
  std::int64_t done = 0;
  std::int64_t worker = 0, workers = 1;
};

class Reader {
 public:
  static std::shared_ptr<Reader> open(ReaderOptions options);

  const Schema& schema() const { return *schema_; }
  /// Null if an older server does not send them.
  const std::shared_ptr<const Coordinates>& coordinates() const { return coordinates_; }
  std::int64_t rank() const { return options_.rank; }
  std::int64_t world() const { return options_.world; }
  /// "client", "server", "shm" or "files"; "none" when the source is gone.
  std::string mode();
  /// Why the mode is "files", with "auto"; else empty.
  std::string why_files();
  /// Why batches were made on the host and copied to the device, with how many for each reason;
  /// empty when none was.
  std::string why_copied();

  /// Was the store read again since this was opened, and the connection lost? Every further call
  /// throws then: a new connection has another state of the store.
  bool is_outdated();

  /// How many batches start() of this position yields.
  std::int64_t count(const Position& position) const;
  /// From now on next() returns these batches.
  void start(const Position& position);
  /// How many batches next() will still return.
  std::int64_t left();
  /// The next batch; null after the last. A batch that cannot be made throws Error; the next call
  /// continues after it.
  std::shared_ptr<Batch> next();
  /// One batch by its global number. Does not affect the stream.
  std::shared_ptr<Batch> get(std::int64_t epoch, std::int64_t batch);

 private:
  explicit Reader(ReaderOptions options);
  void connect();
  std::unique_ptr<Source> connect_to_server();
  void reconnect(const std::string& why);
  void check_position(const Position& position) const;
  /// Runs `call` on the source; if that is lost, once more on a new one, at the same position.
  template <class Call>
  auto on_source(Call&& call);
  std::shared_ptr<Batch> on_device(std::shared_ptr<Batch> batch) const;

  const ReaderOptions options_;
  std::string socket_, directory_;  // of the place; either may be empty
  std::string view_;
  std::shared_ptr<const Schema> schema_;
  std::shared_ptr<const Coordinates> coordinates_;
  handoff::ReadingRecord reading_;

  std::mutex mutex_;  // guards the members below
  std::unique_ptr<Source> source_;
  std::string why_files_, why_copied_;
  std::string why_outdated_;  // empty: it is not
  int process_ = 0;           // the process that connected
  Series series_;             // the remaining batches
  bool started_ = false;
};

}  // namespace batchfs::reader
