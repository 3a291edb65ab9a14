# The fuzz targets. With clang (tools/configure_asan) each is a program of libFuzzer's, which
# tools/fuzz runs. In every build of the tests unit_fuzz puts through each what its fuzzing starts
# from.

find_package(GTest REQUIRED)  # fakes of the unit tests use it

if(BUILD_TESTING)
  add_executable(unit_fuzz tests/fuzz/replay/corpus_test.cc)
  target_link_libraries(unit_fuzz PRIVATE GTest::gtest GTest::gtest_main)
  target_compile_definitions(unit_fuzz PRIVATE
    BATCHFS_FUZZ_CORPUS="${CMAKE_SOURCE_DIR}/tests/fuzz/corpus")
  add_test(NAME unit_fuzz COMMAND unit_fuzz)
endif()

function(batchfs_fuzz name)
  if(BATCHFS_FUZZ)
    add_executable(fuzz_${name} EXCLUDE_FROM_ALL tests/fuzz/${name}.cc)
    target_link_libraries(fuzz_${name} PRIVATE ${ARGN})
    # libFuzzer looks at the counters of all code that is linked after each input: those of code
    # that the target cannot reach take most of the time of a small target (fuse_init: 11 times as
    # fast without them).
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer -Wl,--gc-sections,-z,start-stop-gc)
  endif()
  if(BUILD_TESTING)
    add_library(replay_${name} OBJECT tests/fuzz/${name}.cc)
    target_link_libraries(replay_${name} PRIVATE ${ARGN})
    target_compile_definitions(replay_${name} PRIVATE LLVMFuzzerTestOneInput=fuzz_${name})
    target_link_libraries(unit_fuzz PRIVATE replay_${name} ${ARGN})
  endif()
endfunction()

# The part of the tools that reads values.
add_library(value_text STATIC EXCLUDE_FROM_ALL tools/cli/value_text.cc tools/cli/text.cc
  tools/cli/text_layout.cc)
target_link_libraries(value_text PUBLIC batchfs_dataset)

batchfs_fuzz(metadata batchfs_dataset)
batchfs_fuzz(values value_text)
batchfs_fuzz(view batchfs_view)
batchfs_fuzz(codec batchfs_array)
batchfs_fuzz(shard_index batchfs_array)
batchfs_fuzz(zip batchfs_store)
batchfs_fuzz(icechunk batchfs_store)
batchfs_fuzz(references batchfs_store)
batchfs_fuzz(answers batchfs_store GTest::gtest)
batchfs_fuzz(handoff_server batchfs_handoff)
batchfs_fuzz(handoff_reader batchfs_reader_core)
batchfs_fuzz(gpu_decode batchfs_gpu)
batchfs_fuzz(program batchfs_gpu)
batchfs_fuzz(fuse_init batchfs_fs)
