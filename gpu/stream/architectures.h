#pragma once
// Which GPUs the kernels of a build run on, by the rules of the CUDA C++ Programming Guide (section
// "Compute Capabilities", binary and PTX compatibility): machine code runs on devices of the same
// major capability and the same or a later minor one, PTX on every device from its capability on.

#include <string>
#include <string_view>

namespace batchfs::gpu {

/// The compute capability of a device: 8.9 is {8, 9}.
struct ComputeCapability {
  int major = 0, minor = 0;
};

/// Why the kernels do not run on `device`; empty where they do. `built`: the value of
/// CMAKE_CUDA_ARCHITECTURES, separated by commas ("75-real,120": 75 as machine code, 120 also as
/// PTX; "80-virtual": PTX only; "90a": that capability alone; "native" and "all" cannot be judged
/// and are taken to run).
std::string why_no_kernel(std::string_view built, ComputeCapability device);

}  // namespace batchfs::gpu
