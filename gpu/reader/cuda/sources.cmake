# The sources of libbatchfs_reader_cuda.so: few, so that the library needs only the C++ runtime: the
# CUDA runtime is linked statically. For CMakeLists.txt and tools/python/CMakeLists.txt.
get_filename_component(root ${CMAKE_CURRENT_LIST_DIR}/../../.. ABSOLUTE)
set(reader_cuda_sources
  ${root}/gpu/reader/cuda/decoder_library.cc
  ${root}/gpu/program/blosc.cc
  ${root}/gpu/program/plan.cc
  ${root}/gpu/program/program.cc
  ${root}/gpu/program/program_check.cc
  ${root}/gpu/program/program_setup.cc
  ${root}/gpu/program/zstd_plan.cc
  ${root}/gpu/stream/architectures.cc
  ${root}/engine/base/error.cc
  ${root}/engine/codec/blosc_blocks.cc)
file(GLOB kernel_sources CONFIGURE_DEPENDS ${root}/gpu/kernels/*.cu ${root}/gpu/stream/*.cu)
list(JOIN CMAKE_CUDA_ARCHITECTURES "," architectures)
set_property(SOURCE ${root}/gpu/stream/cuda_devices.cu APPEND PROPERTY COMPILE_DEFINITIONS
  BATCHFS_CUDA_ARCHITECTURES="${architectures}")
