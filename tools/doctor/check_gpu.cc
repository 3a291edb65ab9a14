// doctor: GPUs, and how their memory gets to readers.

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "gpu/stream/cuda_devices.h"
#include "tools/cli/text.h"
#include "tools/doctor/checks.h"

namespace batchfs {

Checks check_gpu() {
  using enum Check::State;
  const std::string why = gpu::why_no_device();
  if (!why.empty())
    return {{note, "GPU",
             "none is used: " + printable(why) +
                 ". Batches are decoded on the processors, which always works",
             ""}};
  Checks checks;
  for (int number = 0; number < gpu::device_count(); ++number) {
    const std::string topic = fmt::format("GPU {}", number),
                      card = fmt::format("{}, {}: ", printable(gpu::device_name(number)),
                                         format_size(gpu::total_device_memory(number)));
    if (const std::string unsupported = gpu::why_no_kernel_for(number); !unsupported.empty())
      checks.push_back({problem, topic,
                        card + unsupported + ". Batches are decoded on the processors",
                        "build batchfs with -DCMAKE_CUDA_ARCHITECTURES=native on this machine"});
    else
      checks.push_back({ok, topic,
                        card + "decodes, and serves batches in its memory to readers on the "
                               "same GPU",
                        ""});
  }
  return checks;
}

}  // namespace batchfs
