#include "gpu/program/program_part.h"

#include <gtest/gtest.h>

#include "tests/unit/gpu/coded_data.h"

namespace batchfs::gpu {
namespace program_part_test {

constexpr std::int64_t kSteps = 3, kRows = 20, kColumns = 50;
constexpr std::uint64_t kChunkBytes = kSteps * kRows * kColumns * 4;

/// Chunks of one variable of the coded data, staged one after the other.
struct Staged {
  explicit Staged(const std::string& name, std::vector<std::int64_t> steps)
      : data(coded_data(9 * kSteps, kSteps, kRows, kColumns)),
        dataset(data.dataset()),
        array(*dataset->find(name)->array),
        codings{gpu_codec_support(array)},
        cpu_only(1) {
    part.number = 7;
    part.batch = std::make_shared<StreamedBatch>();
    part.batch->place = 5;
    part.batch->slot = 2;
    sizes.staging = 1 << 20;
    sizes.source = sizes.planes = sizes.literals = sizes.target = 1 << 18;
    sizes.runs = sizes.run_index = 1 << 16;
    staging.assign(sizes.staging, std::byte{0xcd});
    for (const std::int64_t step : steps) {
      StagedChunk& chunk = part.chunks.emplace_back();
      chunk.array = &array;
      chunk.index = {step, 0, 0};
      chunk.stored = array.find_stored(chunk.index);
      chunk.size = chunk.stored->size;
      chunk.staging = part.staging_size;
      chunk.chunk = std::make_shared<DecodedChunk>();
      chunk.chunk->bytes = kChunkBytes;
      chunk.chunk->offset = kChunkBytes * (part.chunks.size() - 1);
      part.staging_size += (chunk.size + 15) / 16 * 16;
    }
  }

  void stage_all() {
    for (const StagedChunk& chunk : part.chunks)
      stage(chunk, 0, chunk.size, staging.data() + chunk.staging);
  }
  std::shared_ptr<const Program> build() {
    return build_program(part, {staging.data(), sizes, codings, cpu_only, counters});
  }

  MemoryData data;
  std::shared_ptr<const Dataset> dataset;
  const Array& array;
  std::vector<GpuCodecSupport> codings;
  std::vector<std::atomic<bool>> cpu_only;
  ProgramCounters counters;
  ProgramPart part;
  AreaSizes sizes;
  std::vector<std::byte> staging;
};

TEST(ProgramPart, StagesStoredBytesInPieces) {
  Staged staged("v3", {1});
  const StagedChunk& chunk = staged.part.chunks.front();
  const std::string& stored = staged.data.store->objects.at("v3/1.0.0");
  ASSERT_EQ(chunk.size, stored.size());
  stage(chunk, 0, 100, staged.staging.data());
  stage(chunk, 100, chunk.size - 100, staged.staging.data() + 100);
  EXPECT_EQ(std::memcmp(staged.staging.data(), stored.data(), stored.size()), 0);
  EXPECT_EQ(staged.staging[stored.size()], std::byte{0xcd});
}

TEST(ProgramPart, WhatTheCpuDecodesIsStagedDecoded) {
  Staged staged("v6", {0});
  StagedChunk& chunk = staged.part.chunks.front();
  chunk.way = StagedChunk::Way::cpu;
  chunk.size = kChunkBytes;
  stage(chunk, 0, chunk.size, staged.staging.data());
  const auto values = make_data(Data::packed, kChunkBytes, 600);  // the data of coded_data
  EXPECT_EQ(std::memcmp(staged.staging.data(), values.data(), kChunkBytes), 0);
}

TEST(ProgramPart, NeighboursAreDecodedInOneRoundAndCopiedOnce) {
  Staged staged("v3", {0, 1, 2});
  staged.stage_all();
  const auto program = staged.build();
  EXPECT_EQ(staged.part.why_failed, "");
  EXPECT_EQ(program->header().number, 7u);
  EXPECT_EQ(program->header().batch, 5u);
  EXPECT_EQ(program->header().slot, 2u);
  EXPECT_EQ(program->header().chunks, 3u);
  EXPECT_EQ(program->header().rounds.rows, 1u);
  const auto copies = program->table<CopyRow>(program->header().copies);
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].size, staged.part.chunks[2].staging + staged.part.chunks[2].size);
  EXPECT_EQ(staged.part.statuses.size(), 3u);
  EXPECT_EQ(staged.counters.chunks_on_gpu, 3u);
  EXPECT_EQ(staged.counters.bytes_decoded, 3 * kChunkBytes);
}

TEST(ProgramPart, ScratchMemoryThatIsTooSmallForAllMakesMoreRounds) {
  Staged staged("v3", {0, 1, 2});
  staged.sizes.planes = kChunkBytes + kChunkBytes / 2;
  staged.stage_all();
  const auto program = staged.build();
  EXPECT_EQ(program->header().chunks, 3u);
  EXPECT_GE(program->header().rounds.rows, 2u);
  for (const StagedChunk& chunk : staged.part.chunks) EXPECT_FALSE(chunk.chunk->bad);
}

TEST(ProgramPart, AChunkThatNoScratchMemoryTakesIsBad) {
  Staged staged("v3", {0});
  staged.sizes.planes = kChunkBytes / 2;
  staged.stage_all();
  const auto program = staged.build();
  EXPECT_EQ(program->header().chunks, 0u);
  EXPECT_TRUE(staged.part.chunks[0].chunk->bad);
  EXPECT_EQ(staged.counters.chunks_refused, 1u);
}

TEST(ProgramPart, AChunkThatTheGpuDoesNotDecodeIsBadAndOthersAreNot) {
  Staged staged("v3", {0, 1, 2});
  staged.stage_all();
  staged.staging[staged.part.chunks[1].staging + 1] = std::byte{9};  // no version of Blosc's format
  const auto program = staged.build();
  EXPECT_EQ(program->header().chunks, 2u);
  EXPECT_FALSE(staged.part.chunks[0].chunk->bad);
  EXPECT_TRUE(staged.part.chunks[1].chunk->bad);
  EXPECT_FALSE(staged.part.chunks[2].chunk->bad);
  EXPECT_EQ(staged.counters.chunks_refused, 1u);
}

TEST(ProgramPart, APartThatFailedKeepsItsPlaceAndDoesNothing) {
  Staged staged("v3", {0, 1});
  staged.stage_all();
  staged.part.why_failed = "the store is gone";
  const auto program = staged.build();
  EXPECT_EQ(program->header().number, 7u);
  EXPECT_EQ(program->header().batch, 5u);
  EXPECT_EQ(program->header().chunks, 0u);
  EXPECT_EQ(program->header().copies.rows, 0u);
  for (const StagedChunk& chunk : staged.part.chunks) EXPECT_TRUE(chunk.chunk->bad);
  EXPECT_EQ(staged.part.why_failed, "the store is gone");
}

}  // namespace program_part_test
}  // namespace batchfs::gpu
