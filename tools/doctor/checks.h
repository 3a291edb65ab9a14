#pragma once
// The checks of `batchfs doctor`, one file for each kind.

#include <string>
#include <vector>

#include "tools/cli/store_options.h"

namespace batchfs {

struct Check {
  enum class State { ok, note, problem };  // a note: it works, but could work better
  State state = State::ok;
  std::string topic;  // one or two words
  std::string found;  // the finding, and why it matters
  std::string next;   // what to do; empty if there is nothing
};
using Checks = std::vector<Check>;

/// The kernel and its FUSE features.
Checks check_kernel();
/// Checks a kernel release such as "6.12.4-amd64".
Checks check_kernel_release(const std::string& release);
/// Requirements of mounting: the device, the helper of ordinary users, their configuration.
Checks check_fuse();
/// Does this text of /etc/fuse.conf allow `allow_other` to ordinary users?
bool allows_other(const std::string& fuse_conf);

/// Open files, locked memory, huge pages, memory.
Checks check_limits();
/// The choice in "always within_size [advise] never"; empty if there is none.
std::string chosen(const std::string& choices);

Checks check_gpu();
/// The ways to deliver batches: the modes server, client and shm.
Checks check_handoff();
/// Opens the store, measures a few small reads, then reads a chunk and a batch.
Checks check_store(const StoreOptions& options);
/// Asks each shared cache for an object of the store. Throws the errors of open_store().
Checks check_caches(const StoreOptions& options);
/// Times of one chunk and of the first batch of a starter view.
Checks check_reading(const OpenedStore& opened, const StoreOptions& options);
/// Advice after an error of a store. `store` as the user typed it; `damaged`: advice for errors of
/// its contents.
std::string next_step(const Error& error, const std::string& store,
                      const std::string& damaged = "`batchfs inspect STORE` shows what is there");
/// Is the mount healthy?
Checks check_mount(const std::string& directory);
/// Mounts a small temporary store and reads it in each mode.
Checks check_modes();

}  // namespace batchfs
