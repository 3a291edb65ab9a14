#include "engine/base/shared_library.h"

#include <fmt/format.h>

#include <dlfcn.h>

#include "engine/base/error.h"

namespace batchfs {

SharedLibrary::SharedLibrary(const std::string& file, const std::string& use)
    : file_(file), handle_(::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ != nullptr) return;
  const char* why = ::dlerror();
  throw Error(ErrorCode::not_supported,
              fmt::format("{} needs the library {}, which cannot be loaded ({}); install it", use,
                          file, why == nullptr ? "no reason given" : why));
}

void* SharedLibrary::symbol(const char* name) const {
  void* found = ::dlsym(handle_, name);
  if (found == nullptr)
    throw Error(ErrorCode::not_supported,
                fmt::format("the library {} has no {}: another version is needed", file_, name));
  return found;
}

}  // namespace batchfs
