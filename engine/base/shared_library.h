#pragma once
// Libraries that batchfs loads on first use: their cost at a program's start, and whether they are
// installed at all, concern only users of them.

#include <string>

namespace batchfs {

/// Stays loaded as long as the process. Thread-safe.
class SharedLibrary {
 public:
  /// `file` as dlopen() takes it, "libzfp.so.1". Throws not_supported with `use` ("the codec
  /// 'zfpy'") where it cannot be loaded.
  SharedLibrary(const std::string& file, const std::string& use);

  /// Throws not_supported for a library that lacks it.
  template <class Function>
  void find(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(symbol(name));
  }

 private:
  void* symbol(const char* name) const;

  const std::string file_;
  void* const handle_;
};

}  // namespace batchfs
