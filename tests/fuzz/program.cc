// Batch programs of another process, and the contents of its chunks: the kernels' own code runs
// each accepted program, in memory of exactly the agreed sizes. The first byte selects the input: a
// setup, a program byte for byte, or the rows of its tables, whose numbers are ten bytes. The rest
// lies in staging.

#include "gpu/program/program_setup.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/gpu/emulate.h"

namespace batchfs::gpu {
namespace {

std::vector<std::byte> program_of_rows(Input& input) {
  ProgramHeader header;
  header.slices = input.number<std::uint8_t>() % 16;
  header.chunks = input.number<std::uint8_t>() % 16;
  std::vector<std::byte> bytes(sizeof header);
  const auto counts = input.bytes(10);
  std::size_t next = 0;
  const auto table = [&](ProgramHeader::Table& to, std::size_t row) {
    bytes.resize((bytes.size() + 15) / 16 * 16);
    const std::uint64_t rows =
        next < counts.size() ? static_cast<std::uint64_t>(counts[next]) % 5 : 0;
    ++next;
    to = {bytes.size(), rows};
    const auto from = input.bytes(rows * row);
    bytes.insert(bytes.end(), from.begin(), from.end());
    bytes.resize(to.offset + rows * row);
  };
  table(header.copies, sizeof(CopyRow));
  table(header.rounds, sizeof(Round));
  table(header.lz4_streams, sizeof(Lz4Stream));
  table(header.deflate_streams, sizeof(DeflateStream));
  table(header.zstd_blocks, sizeof(ZstdBlock));
  table(header.zstd_frames, sizeof(ZstdFrame));
  table(header.unshuffles, sizeof(Unshuffle));
  table(header.plane_places, sizeof(Place));
  table(header.gathers, sizeof(Gather));
  table(header.decode_after, sizeof(std::uint64_t));
  table(header.assemble_after, sizeof(std::uint64_t));
  header.size = bytes.size();
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

}  // namespace
}  // namespace batchfs::gpu

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace batchfs;
  using namespace batchfs::gpu;
  static const std::vector<Conversion> conversions = [] {
    std::vector<Conversion> made(2);
    made[0].copies = true;
    made[0].item = made[0].result_item = 4;
    made[1].item = made[1].result_item = 4;
    return made;
  }();
  static const std::vector<std::byte> constants(64);
  constexpr std::uint64_t kArea = 8192;
  static const AreaSizes sizes{kArea, kArea, kArea, kArea, kArea, kArea, kArea, 64, kArea};
  Input input(data, size);
  const auto form = input.number<std::uint8_t>() % 8;
  if (form == 0) {
    attempt([&] { ProgramSetup::from_bytes(input.rest()); });
    return 0;
  }
  attempt([&] {
    std::vector<std::byte> bytes;
    if (form == 1) {
      const auto taken = input.bytes(input.number<std::uint16_t>());
      bytes.assign(taken.begin(), taken.end());
    } else {
      bytes = program_of_rows(input);
    }
    const Program program(std::move(bytes));
    check_program(program, sizes, conversions);
    // One element may be copied a billion times, and a stretch may claim to be long: that takes
    // time but does no harm.
    std::uint64_t work = 0;
    for (const Gather& gather : program.table<Gather>(program.header().gathers))
      work += gather.elements;
    for (const Round& round : program.table<Round>(program.header().rounds))
      work += std::uint64_t{round.longest_unshuffle} * (round.unshuffles.count + 1);
    if (work > (1 << 16)) return;
    HostRunner runner(sizes, conversions, constants);
    std::memset(runner.staging(), 0, kArea);
    const auto staged = input.bytes(kArea);
    if (!staged.empty()) std::memcpy(runner.staging(), staged.data(), staged.size());
    runner.run(program);
  });
  return 0;
}
