# The GPUs that the kernels are compiled for, for CMakeLists.txt and tools/python/CMakeLists.txt:
# every compute capability with a card that CUDA 13 supports, as machine code, and the newest also
# as PTX, which the driver compiles for later cards.
#
#   75 Turing (T4, RTX 20)             80 A100      86 A10, A40, RTX 30 (and 87, Orin)
#   89 Ada (L4, L40S, RTX 40)          90 H100, H200, GH200
#   100 B200, GB200 (and 103, B300)    120 RTX 50, RTX PRO Blackwell (and 121, GB10)
#
# Not here: 70 and older, which CUDA 13 cannot compile for; 110 (Jetson Thor), which runs neither
# code of 100 nor PTX of 120. -DCMAKE_CUDA_ARCHITECTURES names others.
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 86-real 89-real 90-real 100-real 120)
endif()
