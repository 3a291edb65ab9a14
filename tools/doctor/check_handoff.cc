// doctor: how batches get to readers over the hand-off, way by way.

#include <unistd.h>

#include "gpu/reader/cuda_decoder.h"
#include "gpu/stream/cuda_devices.h"
#include "gpu/stream/slot_memory.h"
#include "tools/cli/text.h"
#include "tools/doctor/checks.h"

namespace batchfs {

namespace {

using enum Check::State;

/// Allocates device memory that another process can map, and frees it.
Check check_server(const std::string& no_gpu) {
  std::string why = no_gpu;
  try {
    if (why.empty()) {
      const gpu::SlotMemory memory(0, 1);
      ::close(memory.export_fd());
      return {ok, "hand-off, mode server",
              "batches are decoded by batchfs, in GPU memory that readers of the same GPU map", ""};
    }
  } catch (const Error& error) {
    why = error.what();
  }
  return {note, "hand-off, mode server", "not here: " + printable(why), ""};
}

Check check_client(const std::string& no_gpu) {
  const char* why = nullptr;
  if (!no_gpu.empty()) return {note, "hand-off, mode client", "not here: " + printable(no_gpu), ""};
  if (reader::cuda_decoder(&why) != nullptr)
    return {ok, "hand-off, mode client",
            "batches are decoded in the reader's process, on its GPU; batchfs itself needs no GPU",
            ""};
  return {note, "hand-off, mode client", "not here: " + printable(why),
          "install libbatchfs_reader_cuda.so, or set LD_LIBRARY_PATH to its folder"};
}

}  // namespace

Checks check_handoff() {
  std::string no_gpu = gpu::why_no_device();
  if (no_gpu.empty()) no_gpu = gpu::why_no_kernel_for(0);
  return {check_server(no_gpu),
          check_client(no_gpu),
          {ok, "hand-off, mode shm",
           "batches are in memory that readers map; a reader with a GPU copies them to it", ""}};
}

}  // namespace batchfs
