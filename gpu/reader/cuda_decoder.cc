#include "gpu/reader/cuda_decoder.h"

#include <string>

#include <dlfcn.h>
#include <unistd.h>

namespace batchfs::reader {

namespace {

struct Loaded {
  const CudaDecoderTable* table = nullptr;
  std::string why;

  Loaded() {
    // Next to the library or module that contains this, else in the system's search path.
    constexpr const char* kName = "libbatchfs_reader_cuda.so";
    std::string beside;
    Dl_info self{};
    if (::dladdr(reinterpret_cast<const void*>(&cuda_decoder), &self) != 0 &&
        self.dli_fname != nullptr) {
      beside = self.dli_fname;
      const std::size_t slash = beside.rfind('/');
      beside = slash == std::string::npos ? "" : beside.substr(0, slash + 1) + kName;
    }
    void* library = nullptr;
    std::string problem;
    const auto try_load = [&](const char* name) {
      if (library != nullptr) return;
      library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
      const char* text = library == nullptr ? ::dlerror() : nullptr;
      // A library that exists and cannot be loaded is a better reason than one that is missing.
      if (text != nullptr && problem.empty()) problem = text;
    };
    if (!beside.empty() && ::access(beside.c_str(), F_OK) == 0) try_load(beside.c_str());
    try_load(kName);
    if (library == nullptr) {
      why = "the library of GPU decoders cannot be loaded: " + (problem.empty() ? kName : problem);
      return;
    }
    table = static_cast<const CudaDecoderTable*>(::dlsym(library, kCudaDecoderSymbol));
    if (table != nullptr && table->version == CudaDecoderTable::kVersion) return;
    table = nullptr;
    why = std::string(kName) + " is of another version of batchfs";
  }
};

}  // namespace

const CudaDecoderTable* cuda_decoder(const char** why) {
  static const Loaded loaded;
  *why = loaded.why.c_str();
  return loaded.table;
}

}  // namespace batchfs::reader
