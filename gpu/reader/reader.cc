#include "gpu/reader/reader.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "engine/base/system_error.h"
#include "gpu/handoff/connect.h"
#include "gpu/handoff/trust.h"
#include "gpu/reader/file_source.h"
#include "gpu/reader/process.h"
#include "gpu/reader/socket_source.h"

namespace batchfs::reader {

namespace {

namespace fs = std::filesystem;

/// Bounds the connections that a server closes without an answer.
constexpr int kMaxConnections = 16;

bool exists(const std::string& path) {
  struct stat at;
  return ::stat(path.c_str(), &at) == 0;
}

/// No source has the reader's batches.
struct Gone : Error {
  Gone(std::string why, std::string where)
      : Error(ErrorCode::io, std::move(why), std::move(where)) {}
};

/// The only view of a mount. Throws when there are several or none.
std::string only_view(const std::string& mount) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(mount + "/views", error))
    names.push_back(entry.path().filename());
  if (names.size() == 1) return names[0];
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  if (names.empty())
    throw Error(ErrorCode::not_found, "not a batchfs mount with views, not a view and not a socket",
                mount);
  throw Error(ErrorCode::invalid_argument, "say which view: there are " + list, mount);
}

}  // namespace

std::shared_ptr<Reader> Reader::open(ReaderOptions options) {
  return std::shared_ptr<Reader>(new Reader(std::move(options)));
}

Reader::Reader(ReaderOptions options) : options_(std::move(options)), view_(options_.view) {
  if (options_.world < 1 || options_.world > handoff::kMaxWorld || options_.rank < 0 ||
      options_.rank >= options_.world)
    throw Error(ErrorCode::invalid_argument, "there is no rank " + std::to_string(options_.rank) +
                                                 " of " + std::to_string(options_.world));
  if (options_.mode != "auto" && options_.mode != "shm" && options_.mode != "server" &&
      options_.mode != "client" && options_.mode != "files")
    throw Error(ErrorCode::invalid_argument,
                "a mode is auto, shm, server, client or files, not '" + options_.mode + "'");
  if ((options_.mode == "server" || options_.mode == "client") && options_.device == nullptr)
    throw Error(ErrorCode::invalid_argument,
                "the mode " + options_.mode + " needs a device, \"cuda:0\" for instance");
  std::string place = options_.place;
  while (place.size() > 1 && place.back() == '/') place.pop_back();
  struct stat at;
  if (::stat(place.c_str(), &at) != 0)
    throw Error(errno == EACCES ? ErrorCode::access_denied : ErrorCode::not_found,
                std::strerror(errno), place);
  if (S_ISSOCK(at.st_mode)) {
    socket_ = place;
  } else if (exists(place + "/schema.json")) {
    // A view's own directory.
    const fs::path path = fs::absolute(place).lexically_normal();
    if (!view_.empty() && view_ != path.filename().string())
      throw Error(ErrorCode::invalid_argument,
                  "this is the directory of another view than '" + view_ + "'", place);
    view_ = path.filename().string();
    directory_ = path.string();
    socket_ = (path.parent_path().parent_path() / ".batchfs/handoff.sock").string();
  } else {
    if (view_.empty()) view_ = only_view(place);
    directory_ = place + "/views/" + view_;
    socket_ = place + "/.batchfs/handoff.sock";
    if (view_.find('/') != std::string::npos || !exists(directory_ + "/schema.json"))
      throw Error(ErrorCode::not_found, "there is no view '" + view_ + "'", place);
  }
  connect();
  schema_ = source_->schema();
  coordinates_ = source_->coordinates();
  reading_ = source_->reading();
}

/// A server that ends leaves connections unanswered until it closes its socket, and them with it:
/// the next attempt then meets its successor, or nobody. Throws Lost, or the server's refusal.
std::unique_ptr<Source> Reader::connect_to_server() {
  const auto mode = options_.mode == "server"   ? handoff::Mode::server
                    : options_.mode == "client" ? handoff::Mode::client
                    : options_.mode == "shm"    ? handoff::Mode::shm
                                                : handoff::Mode::automatic;
  for (int attempt = 1;; ++attempt) {
    const int socket = handoff::connect_to(socket_);
    if (socket < 0) throw Lost{describe_system_error(errno)};
    try {
      handoff::require_own_server(socket, socket_);
    } catch (...) {
      ::close(socket);
      throw;
    }
    try {
      return std::make_unique<SocketSource>(
          socket,
          SocketSource::Options{view_, options_.rank, options_.world, mode,
                                why_copied_.empty() ? options_.device : nullptr,
                                options_.device_memory},
          options_.interrupted);
    } catch (const Lost& lost) {
      if (!lost.closed || attempt == kMaxConnections) throw;
    }
  }
}

/// Finds a source: the hand-off, else the files.
void Reader::connect() {
  source_ = nullptr;
  why_files_.clear();
  process_ = this_process();
  std::exception_ptr refusal;
  if (options_.mode != "files") {
    try {
      source_ = connect_to_server();
    } catch (const Lost& lost) {
      why_files_ = lost.why;
      refusal = std::make_exception_ptr(
          Error(ErrorCode::io, "cannot read batches: " + lost.why, socket_));
    } catch (Error& error) {
      if (error.code() == ErrorCode::interrupted) throw;
      why_files_ = error.what();
      refusal = std::make_exception_ptr(error.at(socket_));
    }
  }
  if (source_ == nullptr && (options_.mode == "auto" || options_.mode == "files") &&
      !directory_.empty()) {
    try {
      source_ = std::make_unique<FileSource>(directory_);
    } catch (const Lost& lost) {
      throw Error(ErrorCode::io, lost.why, directory_);
    }
  }
  if (source_ != nullptr) return;
  if (refusal == nullptr)
    throw Error(ErrorCode::invalid_argument,
                "a socket has no files; the mode files is for a mount or a view in it",
                options_.place);
  std::rethrow_exception(refusal);
}

std::string Reader::mode() {
  const std::lock_guard lock(mutex_);
  return source_ != nullptr ? source_->mode() : "none";
}

std::string Reader::why_files() {
  const std::lock_guard lock(mutex_);
  return why_files_;
}

std::string Reader::why_copied() {
  const std::lock_guard lock(mutex_);
  return why_copied_.empty() && source_ != nullptr ? source_->why_copied() : why_copied_;
}

bool Reader::is_outdated() {
  const std::lock_guard lock(mutex_);
  return !why_outdated_.empty();
}

std::shared_ptr<Batch> Reader::on_device(std::shared_ptr<Batch> batch) const {
  if (batch == nullptr || options_.device == nullptr || batch->device != nullptr) return batch;
  return copied_to(options_.device, std::move(batch));
}

void Reader::check_position(const Position& position) const {
  if (position.epoch < 0 || position.done < 0 || position.done > schema_->batches ||
      position.workers < 1 || position.workers > handoff::kMaxWorld || position.worker < 0 ||
      position.worker >= position.workers)
    throw Error(ErrorCode::invalid_argument,
                "there is no such position: epoch " + std::to_string(position.epoch) + ", " +
                    std::to_string(position.done) + " of " + std::to_string(schema_->batches) +
                    " batches done, worker " + std::to_string(position.worker) + " of " +
                    std::to_string(position.workers));
}

std::int64_t Reader::count(const Position& position) const {
  check_position(position);
  const std::int64_t of_rank = rank_batches(*schema_, position.done, options_.rank, options_.world);
  return position.worker < of_rank
             ? (of_rank - position.worker + position.workers - 1) / position.workers
             : 0;
}

/// Connects to a new source at the same position. Throws Gone.
void Reader::reconnect(const std::string& why) {
  const auto gone = [&](const std::string& what) {
    return Gone(
        what + "; what was read stays valid. Start it again and continue from the saved state",
        options_.place);
  };
  try {
    connect();
    // Files do not report their reading; but when they answer, the next daemon's hand-off does,
    // too.
    const auto must_tell = [this] {
      return reading_.session != 0 && source_->reading().session == 0;
    };
    if (must_tell()) connect();
    if (must_tell()) throw Lost{why_files_};
    const handoff::ReadingRecord now = source_->reading();
    if (now.session != 0 && now.session == reading_.session && now.number != reading_.number) {
      why_outdated_ =
          "the store was read again since this was opened, and a new connection gets the new state "
          "(" +
          why + "); what was read stays valid. Open it again";
      throw Gone(why_outdated_, options_.place);
    }
    if (source_->schema()->schema_json != schema_->schema_json ||
        source_->schema()->view_json != schema_->view_json)
      throw Gone("the connection was lost (" + why +
                     "), and the view has changed since this was opened; what was read stays "
                     "valid. Open it again",
                 options_.place);
    if (started_) source_->start(series_, options_.ahead);
  } catch (const Gone&) {
    source_ = nullptr;
    throw;
  } catch (const Error& error) {
    source_ = nullptr;
    if (error.code() == ErrorCode::interrupted) throw;
    throw gone("the batchfs process is gone (" + why + "): " + error.what());
  } catch (const Lost& lost) {
    source_ = nullptr;
    throw gone("the batchfs process is gone (" + lost.why + ")");
  }
}

template <class Call>
auto Reader::on_source(Call&& call) {
  if (!why_outdated_.empty()) throw Gone(why_outdated_, options_.place);
  bool fresh = false;
  // the connection belongs to another process
  if (source_ == nullptr || process_ != this_process()) {
    reconnect("it was not there when it was last needed");
    fresh = true;
  }
  for (;;) {
    try {
      return call(*source_);
    } catch (const Lost& lost) {
      if (lost.cannot_map && options_.mode == "auto" && why_copied_.empty()) {
        why_copied_ = lost.why;
        reconnect(lost.why);
        continue;
      }
      if (lost.cannot_map) throw Error(ErrorCode::not_supported, lost.why, options_.place);
      if (fresh) throw Gone(lost.why, options_.place);
      reconnect(lost.why);
      fresh = true;
    }
  }
}

void Reader::start(const Position& position) {
  const std::int64_t count = this->count(position);
  const std::lock_guard lock(mutex_);
  series_ = {position.epoch, position.done + options_.rank + position.worker * options_.world,
             options_.world * position.workers, count};
  started_ = true;
  on_source([&](Source& source) { source.start(series_, options_.ahead); });
}

std::int64_t Reader::left() {
  const std::lock_guard lock(mutex_);
  return series_.count;
}

std::shared_ptr<Batch> Reader::next() {
  const std::lock_guard lock(mutex_);
  if (!started_) throw Error(ErrorCode::invalid_argument, "start() comes before next()");
  if (series_.count == 0) return nullptr;
  const auto advance = [this] {
    series_.first += series_.step;
    --series_.count;
  };
  try {
    auto batch =
        on_source([&](Source& source) { return on_device(source.next(options_.interrupted)); });
    if (batch == nullptr) throw Gone("its stream ended before its time", options_.place);
    advance();
    return batch;
  } catch (const Gone&) {
    throw;
  } catch (const Error& error) {
    // A failed batch is passed; a batch whose wait was interrupted is still to come.
    if (error.code() != ErrorCode::interrupted) advance();
    throw;
  }
}

std::shared_ptr<Batch> Reader::get(std::int64_t epoch, std::int64_t batch) {
  const std::lock_guard lock(mutex_);
  return on_source(
      [&](Source& source) { return on_device(source.get(epoch, batch, options_.interrupted)); });
}

}  // namespace batchfs::reader
