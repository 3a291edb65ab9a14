#pragma once
// The one exception type of batchfs.
//
// An Error is thrown where the cause is known. It holds why, and where: the place is added at most
// once on the way up, by the first frame that knows it (an array and chunk, a JSON path, a URL).
// Commands print it as `batchfs: WHAT failed: WHY (WHERE)`; the mount maps the code to an errno.

#include <exception>
#include <string>
#include <utility>

namespace batchfs {

enum class ErrorCode {
  invalid_argument,  // the user's input is wrong: a view, a selector, a name
  not_found,         // the store, array, dimension or label does not exist
  not_supported,     // valid input that this program does not handle; the message names it
  corrupt,           // stored bytes contradict their metadata or fail to decode
  io,                // reading the store failed for good
  access_denied,     // the store or the system refused
  no_memory,         // more than the memory budget allows
  timed_out,         // a deadline passed
  interrupted,       // the waiter went away
  stale,             // the store changed under the mount
  internal,          // a bug in batchfs
};

class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string why, std::string where = {})
      : code_(code), why_(std::move(why)), where_(std::move(where)) {
    compose();
  }

  ErrorCode code() const { return code_; }
  const std::string& why() const { return why_; }
  const std::string& where() const { return where_; }

  /// `WHY (WHERE)`, one line.
  const char* what() const noexcept override { return text_.c_str(); }

  /// Adds the place unless an inner frame already did.
  Error& at(std::string where) {
    if (where_.empty()) {
      where_ = std::move(where);
      compose();
    }
    return *this;
  }

 private:
  void compose() { text_ = where_.empty() ? why_ : why_ + " (" + where_ + ")"; }

  ErrorCode code_;
  std::string why_;
  std::string where_;
  std::string text_;
};

/// Converts `thrown` to an Error: itself where it is one, else no_memory or internal with its
/// message. `thrown` must not be null.
Error error_of(const std::exception_ptr& thrown);

/// The errno that a file-system operation answers for `code`. The one such table.
int to_errno(ErrorCode code);

}  // namespace batchfs
