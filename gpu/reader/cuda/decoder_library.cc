// libbatchfs_reader_cuda.so: the implementation of gpu/reader/cuda_decoder.h.

#include "gpu/reader/cuda_decoder.h"

#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "gpu/kernels/tables.h"
#include "gpu/program/program_setup.h"
#include "gpu/stream/cuda_devices.h"
#include "gpu/stream/device_runner.h"
#include "gpu/stream/slot_memory.h"

namespace batchfs::gpu {

namespace {

struct Decoder {
  ProgramSetup setup;
  PinnedMapping staging;
  SlotMemory slots;
  DeviceRunner runner;
  std::uint64_t started = 0;

  Decoder(int device, ProgramSetup wanted, void* memory)
      : setup(std::move(wanted)),
        staging(memory, setup.sizes.staging),
        slots(device, setup.sizes.batch),
        runner({.device = device,
                .sizes = setup.sizes,
                .lanes = static_cast<int>(setup.lanes),
                .staging = static_cast<const std::byte*>(memory),
                .batch = slots.data(),
                .slots = setup.slots},
               setup.conversions, setup.constants) {}
};

/// Runs `body`; an exception becomes `result` and a failure.
template <class Body, class Result>
Result guarded(reader::CudaFailure* failure, Result result, Body body) {
  try {
    return body();
  } catch (...) {
    const Error error = error_of(std::current_exception());
    const std::string text = error.what();
    failure->text[text.copy(failure->text, sizeof failure->text - 1)] = 0;
    failure->code = static_cast<std::uint32_t>(error.code());
  }
  return result;
}

int supports(int device, reader::CudaFailure* failure) {
  return guarded(failure, -1, [&] {
    const std::string why = why_no_kernel_for(device);
    if (!why.empty()) throw Error(ErrorCode::not_supported, "the reader's GPU is " + why);
    return 0;
  });
}

void* open(int device, const void* setup, std::size_t setup_size, void* staging,
           std::size_t staging_size, reader::CudaFailure* failure) {
  return guarded(failure, static_cast<void*>(nullptr), [&]() -> void* {
    ProgramSetup wanted =
        ProgramSetup::from_bytes({static_cast<const std::byte*>(setup), setup_size});
    if (wanted.sizes.staging > staging_size)
      throw Error(ErrorCode::corrupt, "staging memory is shorter than it should be");
    return std::make_unique<Decoder>(device, std::move(wanted), staging).release();
  });
}

void close(void* decoder) {
  reader::CudaFailure ignored;
  guarded(&ignored, 0, [&] {
    delete static_cast<Decoder*>(decoder);
    return 0;
  });
}

void* slots(void* decoder, std::uint64_t* size) {
  const auto& it = *static_cast<Decoder*>(decoder);
  *size = it.setup.sizes.batch;
  return it.slots.data();
}

int start(void* decoder, const void* bytes, std::size_t size, reader::CudaFailure* failure) {
  return guarded(failure, -1, [&] {
    auto& it = *static_cast<Decoder*>(decoder);
    const auto* begin = static_cast<const std::byte*>(bytes);
    const Program program(std::vector<std::byte>(begin, begin + size));
    check_program(program, it.setup.sizes, it.setup.conversions);
    // Programs are kept by their numbers.
    if (program.header().number != it.started + 1)
      throw Error(ErrorCode::corrupt, "programs came in another order");
    it.runner.start(program);
    ++it.started;
    return 0;
  });
}

std::int64_t finish(void* decoder, std::uint64_t number, std::uint32_t* refused,
                    std::size_t max_refused, reader::CudaFailure* failure) {
  return guarded(failure, std::int64_t{-1}, [&] {
    const std::vector<std::uint32_t> statuses =
        static_cast<Decoder*>(decoder)->runner.finish(number);
    std::int64_t count = 0;
    for (std::size_t i = 0; i < statuses.size(); ++i) {
      if (statuses[i] == kDecoded) continue;
      if (static_cast<std::size_t>(count) < max_refused)
        refused[count] = static_cast<std::uint32_t>(i);
      ++count;
    }
    return count;
  });
}

void stop(void* decoder) { static_cast<Decoder*>(decoder)->runner.stop(); }

}  // namespace

}  // namespace batchfs::gpu

extern "C" __attribute__((visibility("default")))
const batchfs::reader::CudaDecoderTable batchfs_cuda_decoder;
const batchfs::reader::CudaDecoderTable batchfs_cuda_decoder = {
    batchfs::reader::CudaDecoderTable::kVersion,
    batchfs::gpu::supports,
    batchfs::gpu::open,
    batchfs::gpu::close,
    batchfs::gpu::slots,
    batchfs::gpu::start,
    batchfs::gpu::finish,
    batchfs::gpu::stop};
