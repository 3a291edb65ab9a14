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
  for (int number = 0; number < gpu::device_count(); ++number)
    checks.push_back(
        {ok, fmt::format("GPU {}", number),
         fmt::format("{}, {}: decodes, and serves batches in its memory to readers on the same GPU",
                     printable(gpu::device_name(number)),
                     format_size(gpu::total_device_memory(number))),
         ""});
  return checks;
}

}  // namespace batchfs
