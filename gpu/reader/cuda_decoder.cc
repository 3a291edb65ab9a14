#include "gpu/reader/cuda_decoder.h"

#include <string>

#include <dlfcn.h>

namespace batchfs::reader {

namespace {

struct Loaded {
  const CudaDecoderTable* table = nullptr;
  std::string why;

  Loaded() {
    // Beside the library or module that this is in, else where the system looks.
    constexpr const char* kName = "libbatchfs_reader_cuda.so";
    std::string beside;
    Dl_info self{};
    if (::dladdr(reinterpret_cast<const void*>(&cuda_decoder), &self) != 0 && self.dli_fname != nullptr) {
      beside = self.dli_fname;
      const std::size_t slash = beside.rfind('/');
      beside = slash == std::string::npos ? "" : beside.substr(0, slash + 1) + kName;
    }
    void* library = beside.empty() ? nullptr : ::dlopen(beside.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) library = ::dlopen(kName, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* text = ::dlerror();
      why = std::string("the library of GPU decoders cannot be loaded: ") + (text != nullptr ? text : kName);
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
