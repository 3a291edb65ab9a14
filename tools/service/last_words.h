#pragma once
// The final message of a process that ends because memory ran out where no caller can handle that.
//
// A failed allocation of a block of data is an error of the reader or the command that wants it. A
// small allocation can fail anywhere: at the start of a thread's function, in a destructor, in the
// middle of a change to shared state. Functions of the last kind are noexcept. In all of them the
// process writes its last words and ends at once; a mount's supervisor then starts another daemon.
// The words are stored in advance, since they could not be composed then. Any other exception that
// nothing catches still aborts.

#include <string_view>

namespace batchfs {

/// From now on an uncaught std::bad_alloc (or an Error of that code) ends the process with its last
/// words and `exit_code`. Call once, from main().
void end_with_last_words(int exit_code);

/// Sets the words for `descriptor`, at most 512 bytes. Replaces earlier words of this descriptor;
/// empty words remove them. At most 4 descriptors; a forked process inherits them. Not thread-safe,
/// but the end may come meanwhile.
void set_last_words(int descriptor, std::string_view words);

}  // namespace batchfs
