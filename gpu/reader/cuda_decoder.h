#pragma once
// The decoder that a reader runs in its own process, for mode client: libbatchfs_reader_cuda.so,
// which has the kernels and the CUDA runtime. It is a library of its own, loaded when a reader
// wants it, because it is many times as large as the rest of the reader. The two are of one
// version: the table says so.

#include <cstddef>
#include <cstdint>

namespace batchfs::reader {

/// Why a function of the library failed.
struct CudaFailure {
  char text[512];
  std::uint32_t code;  // an ErrorCode
};

/// What the library gives. Plain C, so that nothing but this has to agree. Functions that fail
/// return nothing or -1 and fill in `failure`.
struct CudaDecoderTable {
  static constexpr std::uint32_t kVersion = 3;
  std::uint32_t version;

  /// 0 where the library has kernels that run on the device, else -1.
  int (*supports)(int device, CudaFailure* failure);

  /// For a setup's bytes (ProgramSetup) of another process, which are checked; staging: what both
  /// have mapped, this process for reading only, page-locked here.
  void* (*open)(int device, const void* setup, std::size_t setup_size, void* staging,
                std::size_t staging_size, CudaFailure* failure);
  /// Waits for what runs.
  void (*close)(void* decoder);
  /// The batch area, and its size.
  void* (*slots)(void* decoder, std::uint64_t* size);
  /// Starts a program of another process, which is checked. Waits while too many run. One thread.
  int (*start)(void* decoder, const void* program, std::size_t size, CudaFailure* failure);
  /// Waits for a program that was started, in order. The chunks that were not decoded: `refused`
  /// gets `max_refused` of them at most, the count is returned. Another thread.
  std::int64_t (*finish)(void* decoder, std::uint64_t number, std::uint32_t* refused,
                         std::size_t max_refused, CudaFailure* failure);
  /// From here on start() fails.
  void (*stop)(void* decoder);
};

/// The name that the library has it under.
inline constexpr const char* kCudaDecoderSymbol = "batchfs_cuda_decoder";

/// The table, loaded once a process; null, and why, where there is none.
const CudaDecoderTable* cuda_decoder(const char** why);

}  // namespace batchfs::reader
