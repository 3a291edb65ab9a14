#pragma once
// The decoder that a reader runs in its own process, in mode client: libbatchfs_reader_cuda.so,
// with the kernels and the CUDA runtime. It is a separate library, loaded on demand, because it is
// many times as large as the rest of the reader. Both must be of one version, which the table
// records.

#include <cstddef>
#include <cstdint>

namespace batchfs::reader {

/// Why a function of the library failed.
struct CudaFailure {
  char text[512];
  std::uint32_t code;  // an ErrorCode
};

/// Interface of the library. Plain C, so that only this table has to agree. Functions that fail
/// return nothing or -1 and fill in `failure`.
struct CudaDecoderTable {
  static constexpr std::uint32_t kVersion = 3;
  std::uint32_t version;

  /// Returns 0 if the library has kernels that run on the device, else -1.
  int (*supports)(int device, CudaFailure* failure);

  /// Opens a decoder for another process's setup (ProgramSetup), which is checked. `staging`:
  /// memory that both processes map, this one read-only; page-locked here.
  void* (*open)(int device, const void* setup, std::size_t setup_size, void* staging,
                std::size_t staging_size, CudaFailure* failure);
  /// Waits for running programs.
  void (*close)(void* decoder);
  /// The batch area, and its size.
  void* (*slots)(void* decoder, std::uint64_t* size);
  /// Starts a program of another process, which is checked. Waits while too many run. Call from one
  /// thread.
  int (*start)(void* decoder, const void* program, std::size_t size, CudaFailure* failure);
  /// Waits for a started program, in order. Writes at most `max_refused` of the chunks that were
  /// not decoded to `refused` and returns their count. Call from another thread.
  std::int64_t (*finish)(void* decoder, std::uint64_t number, std::uint32_t* refused,
                         std::size_t max_refused, CudaFailure* failure);
  /// From now on start() fails.
  void (*stop)(void* decoder);
};

/// Name of the table's symbol in the library.
inline constexpr const char* kCudaDecoderSymbol = "batchfs_cuda_decoder";

/// The table, loaded once per process; null, with the reason, if there is none.
const CudaDecoderTable* cuda_decoder(const char** why);

}  // namespace batchfs::reader
