# The fuzz targets, one program each (preset `fuzz`, with clang): tools/fuzz runs them.

if(NOT CMAKE_CXX_COMPILER_ID STREQUAL Clang)
  message(FATAL_ERROR "libFuzzer comes with clang: configure with the preset fuzz")
endif()

function(batchfs_fuzz name)
  add_executable(fuzz_${name} EXCLUDE_FROM_ALL tests/fuzz/${name}.cc)
  target_link_libraries(fuzz_${name} PRIVATE ${ARGN})
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  set_property(GLOBAL APPEND PROPERTY BATCHFS_FUZZ_TARGETS fuzz_${name})
endfunction()

find_package(GTest REQUIRED)  # fakes of the unit tests use it
batchfs_fuzz(metadata batchfs_dataset)
batchfs_fuzz(view batchfs_view)
batchfs_fuzz(codec batchfs_codec)
batchfs_fuzz(shard_index batchfs_codec)
batchfs_fuzz(zip batchfs_store)
batchfs_fuzz(answers batchfs_store GTest::gtest)
batchfs_fuzz(handoff_server batchfs_handoff)
batchfs_fuzz(handoff_reader batchfs_reader_core)
batchfs_fuzz(program batchfs_gpu)

get_property(targets GLOBAL PROPERTY BATCHFS_FUZZ_TARGETS)
add_custom_target(fuzz DEPENDS ${targets})
