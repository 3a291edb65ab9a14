#define FUSE_USE_VERSION 314
#include "fs/fuse/fuse_session.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

#include <fcntl.h>
#include <fuse3/fuse_lowlevel.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <fmt/format.h>

#include "engine/base/system_error.h"
#include "engine/pipeline/memory_file.h"
#include "fs/control/stderr_capture.h"
#include "fs/fuse/directory_page.h"
#include "fs/fuse/forget_name.h"
#include "fs/fuse/fuse_abi.h"
#include "fs/fuse/fuse_init.h"
#include "fs/fuse/fuse_log.h"
#include "fs/fuse/new_session.h"
#include "fs/fuse/readahead.h"
#include "fs/fuse/request_buffer.h"
#include "fs/fuse/send_reply.h"
#include "fs/fuse/unmount.h"
#include "fs/open_table.h"
#include "fs/opens.h"
#include "fs/reads.h"

namespace batchfs {

namespace {

constexpr double kForever = 1e9;  // seconds; attributes never change, names as forget_name() says
constexpr std::size_t kMaxNameLength = 255;  // bytes, as of other file systems

/// The kernel's read-ahead for a mapping of values.npy, or of a batch without passthrough. More was
/// not faster; the requests in flight take twice as much of the daemon's memory.
constexpr std::uint64_t kReadahead = 1 << 20;

}  // namespace

struct FuseSession::Impl {
  Options options;
  Files& files;
  Log& log;
  FuseLog messages;
  fuse_session* session = nullptr;
  bool mounted = false;
  std::function<void()> ready;
  const time_t mount_time;

  std::atomic<bool> passthrough{false};
  std::atomic<bool> resend{false};
  std::atomic<int> failure{0};  // errno: requests cannot be read, or INIT not be answered
  bool replaying = false;       // in run(), before there are other threads
  std::atomic<std::uint64_t> init_unique{0};
  std::uint64_t init_offered = 0;  // flags of the kernel's INIT

  OpenTable open_files;
  Opens opens;
  Reads reads;

  Impl(Options o, Files& f, Log& l)
      : options(std::move(o)),
        files(f),
        log(l),
        messages(l),
        mount_time(options.state != nullptr ? options.state->mount_time() : ::time(nullptr)),
        open_files(options.state,
                   {[this](int fd) { return open_backing(fd); },
                    [this](std::int32_t id) { close_backing(id); },
                    [this](Ino ino) { return files.path(ino); }},
                   log),
        opens(files, open_files),
        reads(files, open_files) {}

  static Impl& of(void* user) { return *static_cast<Impl*>(user); }
  static Impl& of(fuse_req_t request) { return of(fuse_req_userdata(request)); }

  // ---- the descriptor ----
  // libfuse allows our own read and write of it, where INIT is seen and the reply amended, see
  // fuse_init.h.

  static ssize_t read_request(int fd, void* buffer, std::size_t size, void* user) {
    map_request_buffer({static_cast<std::byte*>(buffer), size});
    const ssize_t got = ::read(fd, buffer, size);
    const int cause = errno;
    if (got < 0 && cause != EINTR && cause != EAGAIN && cause != ENOENT && cause != ENODEV) {
      of(user).failure = cause;
      errno = ENODEV;  // so that libfuse ends without a message of its own
    }
    if (got <= 0) return got;
    const std::span<const std::byte> request(static_cast<const std::byte*>(buffer),
                                             static_cast<std::size_t>(got));
    if (const auto offer = init_offer_of(request)) {
      Impl& self = of(user);
      self.init_offered = offer->flags;
      if (self.options.state != nullptr) self.options.state->keep_init_request(request);
      self.init_unique = offer->unique;
    }
    return got;
  }

  static ssize_t write_reply(int fd, iovec* parts, int count, void* user) {
    Impl& self = of(user);
    const auto& header = *static_cast<const fuse_abi::OutHeader*>(parts[0].iov_base);
    const std::uint64_t unique = self.init_unique.load(std::memory_order_relaxed);
    const bool is_init = self.replaying || (unique != 0 && header.unique == unique);
    // libfuse has not seen INIT, because it had no memory for the request. No other request would
    // succeed after that, and `ready` would never be called.
    if (is_init && header.error != 0) {
      self.failure = -header.error;
      fuse_session_exit(self.session);
    } else if (is_init && !self.replaying && count == 2 &&
               parts[1].iov_len == sizeof(fuse_abi::InitOut)) {
      self.init_unique = 0;
      const std::uint64_t flags = amend_init(*static_cast<fuse_abi::InitOut*>(parts[1].iov_base),
                                             self.init_offered, self.options.passthrough);
      const ssize_t written = ::writev(fd, parts, count);
      if (written > 0) {
        self.initialised(flags);
      } else {
        self.failure = errno;
        fuse_session_exit(self.session);  // nothing follows an INIT that was not answered
      }
      return written;
    }
    if (self.replaying)
      return static_cast<ssize_t>(parts[0].iov_len + (count == 2 ? parts[1].iov_len : 0));
    return send_reply(fd, parts, count, self.log);
  }

  /// Lets libfuse see the INIT request that the session's first daemon answered. The kernel has its
  /// answer.
  void replay_init() {
    const std::span<const std::byte> kept = options.state->init_request();
    std::vector<std::byte> request(kept.begin(), kept.end());
    fuse_buf buffer{};
    buffer.mem = request.data();
    buffer.size = request.size();
    replaying = true;
    fuse_session_process_buf(session, &buffer);
    replaying = false;
    if (failure != 0) throw loop_error();
  }

  /// Has the kernel put what earlier daemons read and did not answer back into its queue.
  void ask_for_unanswered() {
    const fuse_abi::OutHeader notification{sizeof notification, fuse_abi::kNotifyResend, 0};
    if (::write(fuse_session_fd(session), &notification, sizeof notification) >= 0) return;
    const int cause = errno;
    // Their readers would wait forever: another daemon, or the end of the mount, is better.
    if (!has_session_ended(fuse_session_fd(session)))
      throw Error(ErrorCode::io,
                  fmt::format("cannot ask the kernel to resend in-flight requests: {}",
                              std::strerror(cause)));
  }

  /// Starts to serve a session of earlier daemons.
  void take_over() {
    try {
      replay_init();
      ask_for_unanswered();
      initialised(options.state->flags());
    } catch (...) {
      mounted = false;  // the session is left to the next daemon
      throw;
    }
  }

  /// The kernel has the protocol now: see whether it lets us use what it offered.
  void initialised(std::uint64_t flags) {
    if (options.state != nullptr && !options.state->is_agreed()) options.state->agree(flags);
    resend = (flags & fuse_abi::kHasResend) != 0;
    passthrough = options.passthrough && (flags & fuse_abi::kPassthrough) != 0;
    if (passthrough) {
      try {
        MemoryFile probe = files.memory_files().create("batchfs-probe", 2 << 20);  // as batches are
        probe.seal();
        close_backing(open_backing(probe.fd()));
      } catch (const Error& error) {
        passthrough = false;
        log.info(fmt::format("passthrough is off: {}", error.what()));
      }
    }
    files.set_passthrough(passthrough);
    const std::uint64_t readahead = raise_readahead(options.mountpoint, kReadahead);
    log.info(fmt::format("{} {}: passthrough {}, mapping of direct files {}, read-ahead {} KiB",
                         options.taken_over < 0 ? "mounted on" : "took over", options.mountpoint,
                         passthrough ? "on" : "off",
                         (flags & fuse_abi::kDirectIoAllowMmap) != 0 ? "on" : "off",
                         readahead >> 10));
    if (ready) ready();
  }

  std::int32_t open_backing(int fd) {
    fuse_abi::BackingMap map{fd, 0, 0};
    const int id = ::ioctl(fuse_session_fd(session), fuse_abi::kBackingOpen, &map);
    if (id <= 0)
      throw Error(ErrorCode::not_supported,
                  std::string("registering a backing file: ") + std::strerror(errno));
    return id;
  }

  void close_backing(std::int32_t id) {
    std::uint32_t backing = static_cast<std::uint32_t>(id);
    ::ioctl(fuse_session_fd(session), fuse_abi::kBackingClose, &backing);
  }

  // ---- requests ----

  void fill(const Inode& from, struct stat& to) const {
    std::memset(&to, 0, sizeof to);
    to.st_ino = from.shown;
    to.st_mode = from.directory ? S_IFDIR | 0555 : from.link ? S_IFLNK | 0777 : S_IFREG | 0444;
    to.st_nlink = from.directory ? 2 : 1;
    to.st_size = static_cast<off_t>(from.size);
    to.st_blocks = static_cast<blkcnt_t>((from.size + 511) / 512);
    to.st_blksize = from.block_size;
    to.st_uid = ::getuid();
    to.st_gid = ::getgid();
    to.st_atime = to.st_mtime = to.st_ctime = from.time != 0 ? from.time : mount_time;
  }

  static void init(void* user, fuse_conn_info* connection) {
    static_cast<void>(user);
    connection->max_background = 128;
    // Contents never change, so cached pages need no check; listings are cheap and sizes of texts
    // are not, so attributes come with lookups only.
    connection->want &=
        ~(FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO);
  }

  /// Runs `body`, and answers the request with its error.
  template <class Body>
  static void guarded(fuse_req_t request, Body&& body) {
    try {
      body();
    } catch (...) {
      fuse_reply_err(request, to_errno(error_of(std::current_exception()).code()));
    }
  }

  static void lookup(fuse_req_t request, fuse_ino_t parent, const char* name) {
    if (std::strlen(name) > kMaxNameLength) {
      fuse_reply_err(request, ENAMETOOLONG);
      return;
    }
    guarded(request, [&] {
      Impl& self = of(request);
      fuse_entry_param entry{};
      entry.attr_timeout = entry.entry_timeout = kForever;
      // A negative answer (ino 0) is kept too: names do not appear later.
      if (const auto found = self.files.lookup(parent, name)) {
        entry.ino = found->ino;
        self.fill(*found, entry.attr);
        if (found->control) entry.attr_timeout = 0;
        if (found->outdated) entry.entry_timeout = 0;
      }
      // ENOENT: the request was interrupted, so the kernel has not taken the reference.
      if (fuse_reply_entry(request, &entry) == -ENOENT && entry.ino != 0)
        self.files.forget(entry.ino, 1);
    });
  }

  static void forget(fuse_req_t request, fuse_ino_t ino, std::uint64_t references) {
    of(request).files.forget(ino, references);
    fuse_reply_none(request);
  }

  static void getattr(fuse_req_t request, fuse_ino_t ino, fuse_file_info*) {
    guarded(request, [&] {
      Impl& self = of(request);
      const auto found = self.files.attributes(ino);
      if (!found) throw Error(ErrorCode::not_found, "no such file");
      struct stat attributes;
      self.fill(*found, attributes);
      fuse_reply_attr(request, &attributes, kForever);
    });
  }

  static void readlink(fuse_req_t request, fuse_ino_t ino) {
    guarded(request, [&] {
      const auto target = of(request).files.link_target(ino);
      if (!target) throw Error(ErrorCode::invalid_argument, "not a symbolic link");
      fuse_reply_readlink(request, target->c_str());
    });
  }

  static void opendir(fuse_req_t request, fuse_ino_t ino, fuse_file_info* info) {
    guarded(request, [&] {
      // Throws stale for a generation that is gone, so that the kernel looks the path up again.
      of(request).files.attributes(ino);
      // The names of the root stay and their numbers change, see Generations.
      info->cache_readdir = info->keep_cache = is_common(ino) ? 0 : 1;
      fuse_reply_open(request, info);
    });
  }

  static void readdir(fuse_req_t request, fuse_ino_t ino, std::size_t size, off_t offset,
                      fuse_file_info*) {
    guarded(request, [&] {
      const std::string page =
          directory_page(of(request).files, ino, size, static_cast<std::uint64_t>(offset));
      fuse_reply_buf(request, page.data(), page.size());
    });
  }

  // Opens and reads are noexcept: what has begun cannot be answered here, since it may be answered
  // elsewhere. Where memory runs out in them, the daemon ends, and the next one gets the request.

  static void open(fuse_req_t request, fuse_ino_t ino, fuse_file_info* info) noexcept {
    if ((info->flags & O_ACCMODE) != O_RDONLY) {
      fuse_reply_err(request, EROFS);
      return;
    }
    Impl& self = of(request);
    const RequestToken token =
        self.opens.begin([&self, request, ino](const OpenTable::Opening* opening, int error) {
          if (opening == nullptr)
            fuse_reply_err(request, error);
          else
            self.reply_open(request, ino, *opening);
        });
    fuse_req_interrupt_func(request, interrupt_open, reinterpret_cast<void*>(token));
    self.opens.start(token, ino, self.passthrough);
  }

  static void interrupt_open(fuse_req_t request, void* data) noexcept {
    of(request).opens.interrupt(reinterpret_cast<RequestToken>(data));
  }

  void reply_open(fuse_req_t request, Ino ino, const OpenTable::Opening& opening) noexcept {
    fuse_abi::OpenOut reply{opening.handle, fuse_abi::kOpenNoFlush, opening.backing_id};
    if (opening.backing_id != 0)
      reply.flags |= fuse_abi::kOpenPassthrough;
    else if (opening.file->caching() == OpenFile::Caching::kernel)
      reply.flags |= fuse_abi::kOpenKeepCache;
    else
      reply.flags |= fuse_abi::kOpenDirectIo;
    // ENOENT: the opener was killed meanwhile, and no release will come.
    if (fuse_reply_buf(request, reinterpret_cast<char*>(&reply), sizeof reply) == -ENOENT)
      open_files.release(opening.handle, ino);
  }

  static void read(fuse_req_t request, fuse_ino_t ino, std::size_t size, off_t offset,
                   fuse_file_info* info) noexcept {
    Reads& reads = of(request).reads;
    const RequestToken token =
        reads.begin([request](std::span<const OpenFile::Bytes> bytes, int error) {
          if (error != 0)
            fuse_reply_err(request, error);
          else
            reply_bytes(request, bytes);
        });
    fuse_req_interrupt_func(request, interrupt_read, reinterpret_cast<void*>(token));
    reads.start(token, info->fh, ino, static_cast<std::uint64_t>(offset), size);
  }

  static void reply_bytes(fuse_req_t request, std::span<const OpenFile::Bytes> bytes) noexcept {
    std::vector<iovec> parts;
    parts.reserve(bytes.size());
    for (const OpenFile::Bytes& run : bytes)
      parts.push_back({const_cast<std::byte*>(run.data()), run.size()});  // it is only read
    fuse_reply_iov(request, parts.data(), static_cast<int>(parts.size()));
  }

  static void interrupt_read(fuse_req_t request, void* data) noexcept {
    of(request).reads.interrupt(reinterpret_cast<RequestToken>(data));
  }

  static void release(fuse_req_t request, fuse_ino_t ino, fuse_file_info* info) noexcept {
    Impl& self = of(request);
    const std::uint64_t handle = info->fh;
    // First the answer: a release that is sent again after a crash in between must not count twice.
    fuse_reply_err(request, 0);
    self.open_files.release(handle, ino);
  }

  void end() {
    if (!std::exchange(mounted, false)) return;
    if (options.taken_over < 0) {
      const StderrCapture told;  // that it is unmounted already
      return fuse_session_unmount(session);
    }
    try {
      if (!has_session_ended(fuse_session_fd(session))) unmount(options.mountpoint, true);
    } catch (const Error& error) {
      log.warning(std::string("unmounting: ") + error.what());
    }
  }

  /// Why libfuse's threads ended.
  Error loop_error() const {
    if (failure == ENOMEM) return Error(ErrorCode::no_memory, "out of memory", "serving the mount");
    if (failure != 0)
      return Error(ErrorCode::io, fmt::format("/dev/fuse fails: {}", std::strerror(failure)),
                   "serving the mount");
    const std::string why = messages.errors();
    if (why.empty() || why.find("creating thread") != std::string::npos)
      return Error(ErrorCode::no_memory, describe_thread_limit(), "serving the mount");
    return Error(ErrorCode::no_memory, why, "serving the mount");
  }

  static void statfs(fuse_req_t request, fuse_ino_t) {
    struct statvfs answer {};
    answer.f_bsize = answer.f_frsize = Attributes::kLargeBlock;
    answer.f_blocks = (of(request).files.total_bytes() + answer.f_bsize - 1) / answer.f_bsize;
    answer.f_namemax = kMaxNameLength;
    fuse_reply_statfs(request, &answer);
  }

  static constexpr fuse_lowlevel_ops operations() {
    fuse_lowlevel_ops ops{};
    ops.init = init;
    ops.lookup = lookup;
    ops.forget = forget;
    ops.getattr = getattr;
    ops.readlink = readlink;
    ops.opendir = opendir;
    ops.readdir = readdir;
    ops.open = open;
    ops.read = read;
    ops.release = release;
    ops.statfs = statfs;
    return ops;
  }
};

FuseSession::FuseSession(Options options, Files& files, Log& log)
    : impl_(std::make_unique<Impl>(std::move(options), files, log)) {
  Impl& self = *impl_;
  static constexpr fuse_lowlevel_ops kOperations = Impl::operations();
  self.session = new_fuse_session({.mountpoint = self.options.mountpoint,
                                   .source = self.options.source,
                                   .allow_other = self.options.allow_other,
                                   .taken_over = self.options.taken_over},
                                  kOperations, &self, self.messages);
  self.mounted = true;
  static constexpr fuse_custom_io kIo{Impl::write_reply, Impl::read_request, nullptr, nullptr};
  if (fuse_session_custom_io(self.session, &kIo, fuse_session_fd(self.session)) != 0) {
    self.end();
    fuse_session_destroy(self.session);
    throw Error(ErrorCode::no_memory, "out of memory", "setting up FUSE");
  }
}

FuseSession::~FuseSession() {
  impl_->end();
  fuse_session_destroy(impl_->session);
}

bool FuseSession::passthrough() const { return impl_->passthrough; }

bool FuseSession::can_be_taken_over() const {
  return impl_->resend && impl_->options.state != nullptr && impl_->options.state->is_agreed();
}

void FuseSession::forget_name(Ino parent, const std::string& name) {
  batchfs::forget_name(fuse_session_fd(impl_->session), parent, name);
}

void FuseSession::expire_name(Ino parent, const std::string& name) {
  batchfs::expire_name(fuse_session_fd(impl_->session), parent, name);
}

int FuseSession::descriptor() const { return fuse_session_fd(impl_->session); }

void FuseSession::run(std::function<void()> ready, const std::function<void()>& ending) {
  Impl& self = *impl_;
  std::atomic<bool> is_ready = false;
  self.ready = [&is_ready, ready = std::move(ready)] {
    is_ready = true;
    ready();
  };
  if (fuse_set_signal_handlers(self.session) != 0)
    throw Error(ErrorCode::internal, "signals cannot be handled");
  const std::unique_ptr<fuse_loop_config, void (*)(fuse_loop_config*)> config(
      fuse_loop_cfg_create(), fuse_loop_cfg_destroy);
  if (config == nullptr) throw Error(ErrorCode::no_memory, "out of memory", "serving the mount");
  if (self.options.taken_over >= 0) self.take_over();
  // Requests are answered by callbacks, so few threads do; libfuse's default of 10 would be a
  // silent cap.
  fuse_loop_cfg_set_max_threads(config.get(), std::max(4u, std::thread::hardware_concurrency()));
  fuse_loop_cfg_set_clone_fd(config.get(), 0);
  const bool failed = fuse_session_loop_mt(self.session, config.get()) < 0 || self.failure != 0;
  if (failed && is_ready && can_be_taken_over()) throw self.loop_error();
  ending();
  fuse_remove_signal_handlers(self.session);
  self.end();
  self.ready = nullptr;
  if (failed) throw self.loop_error();
}

}  // namespace batchfs
