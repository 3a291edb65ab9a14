// Decoding of chunks for the GPU: the host's plan of their headers, and the kernels' own code, run
// here in memory of exactly the planned sizes. The CPU's decoder must accept whatever they accept,
// with the same bytes. The first byte selects the codec, the next two the number of expected bytes.

#include "engine/codec/codec.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/gpu/emulate.h"

namespace batchfs::gpu {
namespace {

constexpr std::uint64_t kMaxDecoded = 16 << 10;

Verdict plan_of(DecodePlan& plan, std::size_t codec, std::span<const std::byte> chunk,
                std::uint64_t size) {
  switch (codec) {
    case 0:
      return plan.add_blosc(chunk, 0, 0, size);
    case 1:
      return plan.add_zstd(chunk, 0, 0, size);
    case 2:
      return plan.add_lz4(chunk, 0, 0, size);
    case 3:
      return plan.add_deflate(chunk, DeflateFormat::zlib, 0, 0, size);
    case 4:
      return plan.add_deflate(chunk, DeflateFormat::gzip, 0, 0, size);
    default:
      return plan.add_raw(chunk, 0, 0, size, 4);
  }
}

}  // namespace
}  // namespace batchfs::gpu

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace batchfs;
  using namespace batchfs::gpu;
  static const Json configuration = parse_json(R"({"elementsize": 4})", "fuzz");
  constexpr const char* kNames[] = {"blosc", "zstd", "lz4", "zlib", "gzip", "shuffle"};
  Input input(data, size);
  const auto codec = input.number<std::uint8_t>() % std::size(kNames);
  const std::uint64_t expected = input.number<std::uint16_t>() % kMaxDecoded;
  const auto chunk = input.rest();
  DecodePlan plan;
  if (plan_of(plan, codec, chunk, expected) != Verdict::planned) {
    must(plan.chunks() == 0 && plan.lz4_streams.empty() && plan.deflate_streams.empty() &&
         plan.zstd_blocks.empty() && plan.unshuffles.empty());
    return 0;
  }
  // Memory must grow with the chunk and its decoded size, not with the claims of its headers.
  const std::uint64_t most = 64 * (chunk.size() + expected) + (1 << 20);
  must(plan.planes <= most && plan.literals <= most && plan.runs <= most && plan.run_index <= most);
  const std::vector<std::uint8_t> source(data + size - chunk.size(), data + size);
  const Emulated ours = emulate(plan, source, expected);
  if (ours.status.at(0) != kDecoded) return 0;
  ChunkLayout layout{{static_cast<std::int64_t>(expected)},
                     make_type(Kind::unsigned_int, 1),
                     std::vector<std::byte>(1)};
  std::vector<std::byte> theirs(expected);
  std::size_t got = 0;
  must(attempt([&] {
    got = find_codec(kNames[codec])(JsonRef(configuration, "fuzz"), layout)->decode(chunk, theirs);
  }));
  must(got == expected &&
       std::ranges::equal(theirs, std::as_bytes(std::span(ours.target)).first(expected)));
  return 0;
}
