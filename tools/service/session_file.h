#pragma once
// The file that a server keeps its session in, so that the next one can continue it after the
// server was killed: the same store and views (SessionState), and the same versions of objects.
//
// Processes that rely on the session hold a shared lock (flock) on the file; so does the server. It
// is removed when the server takes no readers any more, unless another process holds the lock: then
// the next server continues it. A file without a lock is not continued
// (tools/python/batchfs/_session.py).

#include <string>

#include "engine/base/descriptor.h"

namespace batchfs {

class SessionFile {
 public:
  /// Opens the file, or makes it. Throws access_denied for another user's file, invalid_argument
  /// where another server uses it, no_memory, io.
  explicit SessionFile(std::string path);
  ~SessionFile();
  SessionFile(const SessionFile&) = delete;

  /// Stops relying on the session, which is removed unless another process does. Call once no
  /// process can join any more, however long the server then takes to end. Not thread-safe.
  void leave();

  /// For SessionState.
  int descriptor() const { return file_.get(); }

 private:
  const std::string path_;
  const Descriptor file_;
  bool left_ = false;
};

}  // namespace batchfs
