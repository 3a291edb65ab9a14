// A program in which every kind of row touches the first and the last byte that it may is accepted;
// one step further, and it is refused.

#include <cstring>
#include <functional>

#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "gpu/program/program.h"

namespace batchfs::gpu {
namespace program_check_test {

constexpr std::uint64_t kHuge = ~std::uint64_t{0} - 7;

struct Rows {
  AreaSizes sizes;
  std::vector<Conversion> conversions{2};
  std::vector<CopyRow> copies;
  DecodePlan plan;
  std::vector<Gather> gathers{2};
  std::uint32_t slices = 0;
  int chunks = 1;
  std::uint64_t number = 7;
  std::vector<std::uint64_t> decode_after{1, 6}, assemble_after{2};

  Rows() {
    sizes.staging = 1000;
    sizes.source = 4000;
    sizes.planes = 400;
    sizes.literals = 128;
    sizes.runs = 640;  // 41 each of two blocks, 21 of a stream of LZ4, 537 of one of deflate
    sizes.run_index = 1026;
    sizes.target = 2000;
    sizes.constants = 64;
    sizes.batch = 160;
    copies = {{900, 3900, 100, Area::source}, {0, 1000, 1000, Area::target}};

    // Five streams of a chunk: 40 bytes of LZ4 at the end of their area, into planes.
    Lz4Stream lz4;
    lz4.source = 3960;
    lz4.source_size = 40;
    lz4.target = {Area::planes, 300};
    lz4.size = 100;
    lz4.runs = 103 - max_lz4_runs(40);
    lz4.run_index = 1024;
    plan.lz4_streams = {lz4};

    DeflateStream deflate;
    deflate.source = 3980;
    deflate.source_size = 20;
    deflate.target = {Area::target, 1900};
    deflate.size = 100;
    deflate.runs = 640 - max_deflate_runs(100);
    deflate.run_index = 1025;
    plan.deflate_streams = {deflate};

    ZstdBlock raw;
    raw.source = 3900;
    raw.size = 100;
    ZstdBlock rle;
    rle.kind = ZstdBlockKind::rle;
    rle.source = 3999;
    rle.size = 5000;  // one byte of input
    ZstdBlock tree;
    tree.kind = ZstdBlockKind::compressed;
    tree.literal_kind = LiteralKind::huffman;
    tree.literal_streams = 4;
    tree.literal_tree = true;
    tree.tree = 2;
    tree.size = 128 << 10;
    tree.literals = 96;
    tree.literal_size = 31;  // of 32
    tree.literal_source = 3900;
    tree.literal_source_size = 100;
    tree.sequences = 3990;
    tree.sequences_size = 10;
    tree.sequence_count = 20;
    tree.tables[0] = tree.tables[1] = tree.tables[2] = kDefaultTable;
    tree.runs = max_zstd_runs(20);
    tree.run_index = 512;
    ZstdBlock user = tree;  // of the block before it
    user.runs = user.run_index = 0;
    user.literal_tree = false;
    user.tables[1] = 2;
    plan.zstd_blocks = {raw, rle, tree, user};
    ZstdFrame frame;
    frame.blocks = 4;
    frame.target = {Area::target, 1000};
    frame.size = 1000;
    plan.zstd_frames = {frame};

    Unshuffle split;
    split.target = 1600;
    split.size = 400;
    split.item = 4;
    split.order = Order::shuffled;
    split.split = true;
    plan.unshuffles = {split};
    plan.plane_places = {
        {Area::planes, 300}, {Area::source, 3900}, {Area::planes, 0}, {Area::planes, 100}};
    plan.longest_unshuffle = 400;

    // 5 by 4 elements from the end of the target backwards, and a fill value for the rest of the
    // batch.
    conversions[0].copies = true;
    conversions[0].item = conversions[0].result_item = 4;
    conversions[1].item = conversions[1].result_item = 4;
    conversions[1].normalises = conversions[1].in_doubles = true;
    conversions[1].entries = 4;
    conversions[1].divide = 32;
    Gather& moved = gathers[0];
    moved.source = 1996;
    moved.target = 0;
    moved.elements = 20;
    moved.dims = 2;
    moved.swap = 4;
    moved.dim[0] = {5, -4, 4, 0};
    moved.dim[1] = {4, -20, 20, 0};
    Gather& filled = gathers[1];
    filled.source = 60;
    filled.target = 80;
    filled.elements = 20;
    filled.first_slice = 1;
    filled.conversion = 1;
    filled.dims = 2;
    filled.from_constants = true;
    filled.dim[0] = {5, 0, 4, 0};
    filled.dim[1] = {4, 0, 20, 1};
    slices = 2;
  }

  Program build() const {
    ProgramBuilder builder;
    builder.copies = copies;
    builder.number = number;
    builder.decode_after = decode_after;
    builder.assemble_after = assemble_after;
    DecodePlan counted = plan;
    // A plan counts its chunks itself: these are of no bytes.
    for (int i = 0; i < chunks; ++i) EXPECT_EQ(counted.add_raw({}, 0, 0, 0, 1), Verdict::planned);
    counted.unshuffles = plan.unshuffles;
    counted.plane_places = plan.plane_places;
    counted.longest_unshuffle = plan.longest_unshuffle;
    builder.add_round(counted);
    return builder.build(gathers, slices);
  }
};

bool refuses(const std::function<void(Rows&)>& change) {
  Rows rows;
  change(rows);
  try {
    check_program(rows.build(), rows.sizes, rows.conversions);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::corrupt);
    return true;
  }
  return false;
}

TEST(CheckProgram, AcceptsWhatStaysInside) {
  const Rows rows;
  const Program program = rows.build();
  ASSERT_EQ(program.header().chunks, 1u);
  EXPECT_NO_THROW(check_program(program, rows.sizes, rows.conversions));
}

TEST(CheckProgram, Copies) {
  EXPECT_TRUE(refuses([](Rows& r) { r.copies[0].staging = 901; }));
  EXPECT_TRUE(refuses([](Rows& r) { r.copies[0].offset = 3901; }));
  EXPECT_TRUE(refuses([](Rows& r) { r.copies[0].size = kHuge; }));
  EXPECT_TRUE(refuses([](Rows& r) { r.copies[1].offset = 1001; }));
  EXPECT_TRUE(refuses([](Rows& r) { r.copies[1].area = Area::planes; }));
  EXPECT_TRUE(refuses([](Rows& r) { r.copies[1].area = static_cast<Area>(77); }));
}

TEST(CheckProgram, Lz4Streams) {
  const auto with = [](const std::function<void(Lz4Stream&)>& change) {
    return refuses([&](Rows& r) { change(r.plan.lz4_streams[0]); });
  };
  EXPECT_TRUE(with([](Lz4Stream& s) { s.chunk = 1; }));
  EXPECT_TRUE(with([](Lz4Stream& s) { s.source = 3961; }));
  EXPECT_TRUE(with([](Lz4Stream& s) { s.source = kHuge; }));
  EXPECT_TRUE(with([](Lz4Stream& s) { s.source_size = 0; }));
  EXPECT_TRUE(with([](Lz4Stream& s) { s.size = 0; }));
  EXPECT_TRUE(with([](Lz4Stream& s) { s.size = 101; }));
  EXPECT_TRUE(with([](Lz4Stream& s) { s.target.offset = 301; }));
  EXPECT_TRUE(with([](Lz4Stream& s) { s.target.area = Area::source; }))
      << "what is read is not written to";
  EXPECT_TRUE(with([](Lz4Stream& s) { ++s.runs; }));
  EXPECT_TRUE(with([](Lz4Stream& s) { ++s.run_index; }));
}

TEST(CheckProgram, DeflateStreams) {
  const auto with = [](const std::function<void(DeflateStream&)>& change) {
    return refuses([&](Rows& r) { change(r.plan.deflate_streams[0]); });
  };
  EXPECT_TRUE(with([](DeflateStream& s) { s.chunk = 1; }));
  EXPECT_TRUE(with([](DeflateStream& s) { s.format = static_cast<DeflateFormat>(2); }));
  EXPECT_TRUE(with([](DeflateStream& s) { s.source = 3981; }));
  EXPECT_TRUE(with([](DeflateStream& s) { s.source = kHuge; }));
  EXPECT_TRUE(with([](DeflateStream& s) { s.source_size = 0; }));
  EXPECT_TRUE(with([](DeflateStream& s) { s.source_size = kMaxStream + 1; }));
  EXPECT_TRUE(with([](DeflateStream& s) { s.size = 0; }));
  EXPECT_TRUE(with([](DeflateStream& s) { s.size = 101; }));
  EXPECT_TRUE(with([](DeflateStream& s) { s.target.offset = 1901; }));
  EXPECT_TRUE(with([](DeflateStream& s) { s.target.area = Area::planes; }));
  EXPECT_TRUE(with([](DeflateStream& s) { s.target.area = Area::source; }))
      << "what is read is not written to";
  EXPECT_TRUE(with([](DeflateStream& s) { ++s.runs; }));
  EXPECT_TRUE(with([](DeflateStream& s) { ++s.run_index; }));
}

TEST(CheckProgram, ZstdBlocks) {
  const auto with = [](std::size_t block, const std::function<void(ZstdBlock&)>& change) {
    return refuses([&](Rows& r) { change(r.plan.zstd_blocks[block]); });
  };
  EXPECT_TRUE(with(0, [](ZstdBlock& b) { b.chunk = 1; }));
  EXPECT_TRUE(with(0, [](ZstdBlock& b) { b.kind = static_cast<ZstdBlockKind>(3); }));
  EXPECT_TRUE(with(0, [](ZstdBlock& b) { b.size = 101; }));
  EXPECT_TRUE(with(1, [](ZstdBlock& b) { b.source = 4000; }));
  EXPECT_TRUE(with(2, [](ZstdBlock& b) { b.size = (128 << 10) + 1; }));
  EXPECT_TRUE(with(2, [](ZstdBlock& b) { b.literal_size = 33; }));
  EXPECT_TRUE(with(2, [](ZstdBlock& b) { b.literals = kHuge; }));
  EXPECT_TRUE(with(2, [](ZstdBlock& b) { b.literal_source = 3901; }));
  EXPECT_TRUE(with(2, [](ZstdBlock& b) { b.literal_source_size = 0; }));
  EXPECT_TRUE(with(2, [](ZstdBlock& b) { b.literal_streams = 3; }));
  EXPECT_TRUE(with(2, [](ZstdBlock& b) { b.literal_kind = static_cast<LiteralKind>(9); }));
  EXPECT_TRUE(with(2, [](ZstdBlock& b) { b.literal_kind = LiteralKind::rle; }))
      << "the next block uses its tree";
  EXPECT_TRUE(with(2, [](ZstdBlock& b) { b.sequences = 3991; }));
  EXPECT_TRUE(with(2, [](ZstdBlock& b) { b.sequence_count = 21; }))
      << "more runs than there is room for";
  EXPECT_TRUE(with(2, [](ZstdBlock& b) { b.run_index = 514; }));
  EXPECT_TRUE(with(3, [](ZstdBlock& b) { b.tree = 4; }));
  EXPECT_TRUE(with(3, [](ZstdBlock& b) { b.tree = 1; })) << "has none";
  EXPECT_TRUE(with(3, [](ZstdBlock& b) { b.tree = 3; })) << "has none of its own";
  EXPECT_TRUE(with(3, [](ZstdBlock& b) { b.tables[0] = 4; }));
  EXPECT_TRUE(with(3, [](ZstdBlock& b) { b.tables[2] = 0; })) << "has no sequences";
}

TEST(CheckProgram, ZstdFrames) {
  const auto with = [](const std::function<void(ZstdFrame&)>& change) {
    return refuses([&](Rows& r) { change(r.plan.zstd_frames[0]); });
  };
  EXPECT_TRUE(with([](ZstdFrame& f) { f.chunk = 1; }));
  EXPECT_TRUE(with([](ZstdFrame& f) { f.blocks = 5; }));
  EXPECT_TRUE(with([](ZstdFrame& f) { f.first_block = 0xffffffff; }));
  EXPECT_TRUE(with([](ZstdFrame& f) { f.size = 1001; }));
  EXPECT_TRUE(with([](ZstdFrame& f) { f.target.offset = 1001; }));
  EXPECT_TRUE(with([](ZstdFrame& f) { f.target.area = Area::planes; }));
  EXPECT_TRUE(with([](ZstdFrame& f) { std::memset(&f.has_checksum, 2, 1); }))
      << "no value of a bool";
}

TEST(CheckProgram, ShuffledStretches) {
  const auto with = [](const std::function<void(Unshuffle&)>& change) {
    return refuses([&](Rows& r) { change(r.plan.unshuffles[0]); });
  };
  EXPECT_TRUE(with([](Unshuffle& u) { u.chunk = 1; }));
  EXPECT_TRUE(with([](Unshuffle& u) { u.item = 0; }));
  EXPECT_TRUE(with([](Unshuffle& u) { u.order = static_cast<Order>(3); }));
  EXPECT_TRUE(with([](Unshuffle& u) { u.target = 1601; }));
  EXPECT_TRUE(with([](Unshuffle& u) { u.size = 396; })) << "shorter than the longest";
  EXPECT_TRUE(with([](Unshuffle& u) { u.size = 399; })) << "no whole items";
  EXPECT_TRUE(with([](Unshuffle& u) { u.planes = 1; })) << "too few planes";
  EXPECT_TRUE(with([](Unshuffle& u) { u.planes = 0xffffffff; }));
  EXPECT_TRUE(with([](Unshuffle& u) { u.item = 256; }));
  EXPECT_TRUE(refuses([](Rows& r) { r.plan.plane_places[0].offset = 301; }));
  EXPECT_TRUE(refuses([](Rows& r) { r.plan.plane_places[1].offset = 3901; }));
  EXPECT_TRUE(refuses([](Rows& r) { r.plan.plane_places[2].area = Area::target; }));
}

TEST(CheckProgram, Boxes) {
  const auto with = [](std::size_t box, const std::function<void(Gather&)>& change) {
    return refuses([&](Rows& r) { change(r.gathers[box]); });
  };
  EXPECT_TRUE(with(0, [](Gather& g) { g.conversion = 2; }));
  EXPECT_TRUE(with(0, [](Gather& g) { g.dims = 0; }));
  EXPECT_TRUE(with(0, [](Gather& g) { g.dims = kGatherDims + 1; }));
  EXPECT_TRUE(with(0, [](Gather& g) { g.source = 2000; }));
  EXPECT_TRUE(with(0, [](Gather& g) { g.source = 72; })) << "the first element is before the area";
  EXPECT_TRUE(with(0, [](Gather& g) { g.source = 1995; })) << "not aligned";
  EXPECT_TRUE(with(1, [](Gather& g) { g.target = 84; }));
  EXPECT_TRUE(with(1, [](Gather& g) { g.target = kHuge; }));
  EXPECT_TRUE(with(1, [](Gather& g) { g.source = 64; })) << "the constants' end";
  EXPECT_TRUE(with(1, [](Gather& g) { g.entry = 1; })) << "the last row would be the fifth of four";
  EXPECT_TRUE(with(1, [](Gather& g) { g.dim[1].entry_stride = -1; }));
  EXPECT_TRUE(with(0, [](Gather& g) { g.dim[0].source_stride = INT64_MIN / 8 * 4; }));
  EXPECT_TRUE(with(0, [](Gather& g) { g.dim[1].target_stride = INT64_MAX / 4 * 4; }));
  EXPECT_TRUE(with(0, [](Gather& g) { g.dim[1].count = 0; }));
  EXPECT_TRUE(with(0, [](Gather& g) { g.dim[1].count = 0xffffffff; }));
  EXPECT_TRUE(with(0, [](Gather& g) { g.elements = 21; }));
  EXPECT_TRUE(with(0, [](Gather& g) { g.swap = 3; }));
  EXPECT_TRUE(with(0, [](Gather& g) { g.swap = 8; })) << "more than an element";
  EXPECT_TRUE(with(1, [](Gather& g) { g.swap = 2; })) << "less than a number";
  EXPECT_TRUE(with(1, [](Gather& g) { g.first_slice = 0; }));
  EXPECT_TRUE(refuses([](Rows& r) { r.slices = 3; }));
  EXPECT_TRUE(refuses([](Rows& r) { r.sizes.batch = 159; }));
  EXPECT_TRUE(refuses([](Rows& r) { r.sizes.target = 1999; }));
}

TEST(CheckProgram, RunsDoNotOverlap) {
  EXPECT_TRUE(refuses([](Rows& r) { r.plan.zstd_blocks[3].runs = 1; }));
  EXPECT_TRUE(refuses([](Rows& r) { r.plan.zstd_blocks[3].run_index = 1; }));
  EXPECT_TRUE(refuses([](Rows& r) { r.plan.zstd_blocks[3].runs = r.plan.zstd_blocks[2].runs; }));
  EXPECT_TRUE(refuses([](Rows& r) { r.plan.lz4_streams[0].run_index = 600; }));
  EXPECT_TRUE(refuses([](Rows& r) { --r.plan.lz4_streams[0].runs; }));
  EXPECT_TRUE(refuses([](Rows& r) { --r.plan.deflate_streams[0].runs; }));
  EXPECT_TRUE(refuses([](Rows& r) { --r.plan.deflate_streams[0].run_index; }));
}

TEST(CheckProgram, BlocksAreOfTheirFramesChunkAndUseTheirOwnTree) {
  EXPECT_FALSE(refuses([](Rows& r) { r.chunks = 2; }));
  EXPECT_TRUE(refuses([](Rows& r) { r.chunks = 2, r.plan.zstd_blocks[1].chunk = 1; }))
      << "what is refused leaves no result";
  EXPECT_TRUE(refuses([](Rows& r) { r.plan.zstd_blocks[3].literal_tree = true; }))
      << "the tree of another block";
  EXPECT_TRUE(refuses([](Rows& r) { r.plan.zstd_frames.push_back(r.plan.zstd_frames[0]); }))
      << "blocks of two frames";
}

TEST(CheckProgram, WorkIsBounded) {
  EXPECT_FALSE(refuses([](Rows& r) { r.chunks = 4; }));
  EXPECT_TRUE(refuses([](Rows& r) { r.chunks = 5; })) << "more than rows that write";
  EXPECT_TRUE(refuses([](Rows& r) { r.plan.longest_unshuffle = 401; }));
  EXPECT_TRUE(refuses([](Rows& r) { r.plan.longest_unshuffle = 0xffffffff; }));
  EXPECT_TRUE(refuses([](Rows& r) { r.copies.insert(r.copies.end(), 6, r.copies[1]); }));
  EXPECT_TRUE(refuses(
      [](Rows& r) { r.plan.unshuffles.insert(r.plan.unshuffles.end(), 5, r.plan.unshuffles[0]); }));
  EXPECT_TRUE(refuses([](Rows& r) {
    r.gathers.push_back(r.gathers[0]);
    r.gathers[2].first_slice = 2;
    r.slices = 3;
  })) << "more than the batch";
}

TEST(CheckProgram, ItWaitsForEarlierProgramsOnly) {
  EXPECT_TRUE(refuses([](Rows& r) { r.decode_after = {6, 1}; }));
  EXPECT_TRUE(refuses([](Rows& r) { r.decode_after = {6, 6}; }));
  EXPECT_TRUE(refuses([](Rows& r) { r.decode_after = {0}; }));
  EXPECT_TRUE(refuses([](Rows& r) { r.assemble_after = {7}; }));
}

TEST(CheckProgram, RoundsFollowOneAnother) {
  const Rows rows;
  const Program program = rows.build();
  const auto refused = [&](const std::function<void(Round&)>& change) {
    std::vector<std::byte> bytes(program.bytes().begin(), program.bytes().end());
    change(*reinterpret_cast<Round*>(bytes.data() + program.header().rounds.offset));
    try {
      check_program(Program(std::move(bytes)), rows.sizes, rows.conversions);
    } catch (const Error& error) {
      return error.code() == ErrorCode::corrupt;
    }
    return false;
  };
  EXPECT_FALSE(refused([](Round&) {}));
  EXPECT_TRUE(refused([](Round& r) { r.lz4_streams = {1, 0}; }));
  EXPECT_TRUE(refused([](Round& r) { r.lz4_streams.count = 0; })) << "a row of no round";
  EXPECT_TRUE(refused([](Round& r) { r.unshuffles.count = 2; }));
  EXPECT_TRUE(refused([](Round& r) { r.chunks = {0, 2}; }));
  EXPECT_TRUE(refused([](Round& r) { r.zstd_blocks.first = 0xffffffff; }));
}

TEST(CheckConversions, NumbersLieInTheConstants) {
  const auto refused = [](const std::function<void(Conversion&)>& change) {
    Rows rows;
    change(rows.conversions[1]);
    try {
      check_conversions(rows.conversions, rows.sizes.constants);
    } catch (const Error& error) {
      return error.code() == ErrorCode::corrupt;
    }
    return false;
  };
  EXPECT_FALSE(refused([](Conversion&) {}));
  EXPECT_TRUE(refused([](Conversion& c) { c.divide = 40; }));
  EXPECT_TRUE(refused([](Conversion& c) { c.divide = 33; }));
  EXPECT_TRUE(refused([](Conversion& c) { c.subtract = kHuge; }));
  EXPECT_TRUE(refused([](Conversion& c) { c.entries = 0; }));
  EXPECT_TRUE(refused([](Conversion& c) { c.entries = UINT64_MAX / 4; }));
  EXPECT_TRUE(refused([](Conversion& c) { c.masks = 9; }));
  EXPECT_TRUE(refused([](Conversion& c) { c.item = 8; }));
  EXPECT_TRUE(refused([](Conversion& c) { c.result = Number::i32; }));
  EXPECT_TRUE(refused([](Conversion& c) { c.arithmetic = Number::bf16; }));
  EXPECT_TRUE(refused([](Conversion& c) { c.stored = static_cast<Number>(200); }));
  EXPECT_TRUE(refused([](Conversion& c) { c.copies = true, c.result_item = 8; }));
}

TEST(Program, TablesLieInside) {
  const Program program = Rows().build();
  const auto refused = [&](const std::function<void(ProgramHeader&)>& change) {
    std::vector<std::byte> bytes(program.bytes().begin(), program.bytes().end());
    change(*reinterpret_cast<ProgramHeader*>(bytes.data()));
    try {
      Program wrong(std::move(bytes));
    } catch (const Error& error) {
      return error.code() == ErrorCode::corrupt;
    }
    return false;
  };
  EXPECT_FALSE(refused([](ProgramHeader&) {}));
  EXPECT_TRUE(refused([](ProgramHeader& h) { ++h.magic; }));
  EXPECT_TRUE(refused([](ProgramHeader& h) { ++h.size; }));
  EXPECT_TRUE(refused([](ProgramHeader& h) { h.copies.offset += 8; }));
  EXPECT_TRUE(refused([](ProgramHeader& h) { h.gathers.offset = h.size; }));
  EXPECT_TRUE(refused([](ProgramHeader& h) { h.gathers.offset = kHuge / 16 * 16; }));
  EXPECT_TRUE(refused([](ProgramHeader& h) { h.gathers.rows = kHuge; }));
  EXPECT_TRUE(refused(
      [](ProgramHeader& h) { h.zstd_blocks.rows = (UINT64_C(1) << 60) / sizeof(ZstdBlock); }));
  EXPECT_THROW(Program(std::vector<std::byte>(sizeof(ProgramHeader) - 1)), Error);
  EXPECT_THROW(Program(std::vector<std::byte>{}), Error);
}

}  // namespace program_check_test
}  // namespace batchfs::gpu
