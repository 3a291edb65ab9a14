#pragma once
// The decoder of a reader without a GPU: programs run on the host, by the kernels' own code.

#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "engine/base/error.h"
#include "gpu/program/program_setup.h"
#include "gpu/reader/cuda_decoder.h"
#include "tests/unit/gpu/emulate.h"

namespace batchfs::reader {

struct EmulatedDecoder {
  gpu::ProgramSetup setup;
  gpu::HostRunner runner;
  const std::byte* staging;
  std::mutex mutex;  // guards the members below
  std::map<std::uint64_t, std::vector<std::uint32_t>> statuses;
  bool stopped = false;

  EmulatedDecoder(gpu::ProgramSetup wanted, const std::byte* shared)
      : setup(std::move(wanted)),
        runner(setup.sizes, setup.conversions, setup.constants),
        staging(shared) {}

  void start(gpu::Program program) {
    {
      const std::lock_guard lock(mutex);
      if (stopped) throw Error(ErrorCode::interrupted, "the decoder is stopping");
    }
    gpu::check_program(program, setup.sizes, setup.conversions);
    for (const auto& row : program.table<gpu::CopyRow>(program.header().copies))
      std::memcpy(runner.staging() + row.staging, staging + row.staging, row.size);
    auto status = runner.run(program);
    const std::lock_guard lock(mutex);
    statuses[program.header().number] = std::move(status);
  }

  static EmulatedDecoder& of(void* decoder) { return *static_cast<EmulatedDecoder*>(decoder); }

  template <class Result, class Body>
  static Result guarded(CudaFailure* failure, Result failed, Body body) {
    try {
      return body();
    } catch (...) {
      const std::exception_ptr caught = std::current_exception();  // not of the tests' error_of()
      const Error error = error_of(caught);
      std::snprintf(failure->text, sizeof failure->text, "%s", error.what());
      failure->code = static_cast<std::uint32_t>(error.code());
      return failed;
    }
  }
};

inline constexpr CudaDecoderTable kEmulatedDecoder{
    .version = CudaDecoderTable::kVersion,
    .supports = [](int, CudaFailure*) { return 0; },
    .open = [](int, const void* setup, std::size_t size, void* staging, std::size_t,
               CudaFailure* failure) -> void* {
      return EmulatedDecoder::guarded(failure, static_cast<void*>(nullptr), [&]() -> void* {
        const std::span bytes(static_cast<const std::byte*>(setup), size);
        return new EmulatedDecoder(gpu::ProgramSetup::from_bytes(bytes),
                                   static_cast<const std::byte*>(staging));
      });
    },
    .close = [](void* decoder) { delete &EmulatedDecoder::of(decoder); },
    .slots = [](void* decoder, std::uint64_t* size) -> void* {
      auto& it = EmulatedDecoder::of(decoder);
      *size = it.setup.sizes.batch;
      return const_cast<std::byte*>(it.runner.batch());
    },
    .start =
        [](void* decoder, const void* program, std::size_t size, CudaFailure* failure) {
          return EmulatedDecoder::guarded(failure, -1, [&] {
            const auto* begin = static_cast<const std::byte*>(program);
            EmulatedDecoder::of(decoder).start(gpu::Program(std::vector(begin, begin + size)));
            return 0;
          });
        },
    .finish = [](void* decoder, std::uint64_t number, std::uint32_t* refused,
                 std::size_t max_refused, CudaFailure*) -> std::int64_t {
      auto& it = EmulatedDecoder::of(decoder);
      const std::lock_guard lock(it.mutex);
      std::int64_t count = 0;
      const auto statuses = it.statuses.extract(number).mapped();
      for (std::size_t i = 0; i < statuses.size(); ++i) {
        if (statuses[i] == gpu::kDecoded) continue;
        if (static_cast<std::size_t>(count) < max_refused)
          refused[count] = static_cast<std::uint32_t>(i);
        ++count;
      }
      return count;
    },
    .stop =
        [](void* decoder) {
          auto& it = EmulatedDecoder::of(decoder);
          const std::lock_guard lock(it.mutex);
          it.stopped = true;
        },
};

}  // namespace batchfs::reader
