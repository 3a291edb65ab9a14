#include "gpu/program/program_setup.h"

#include <cstring>

#include "engine/base/error.h"

namespace batchfs::gpu {

namespace {

struct Header {
  static constexpr std::uint64_t kMagic = 0x3174657373666221;  // "!bfsset1"

  std::uint64_t magic = kMagic;
  AreaSizes sizes;
  std::uint64_t slot_bytes = 0;
  std::uint32_t lanes = 0, slots = 0;
  std::uint64_t conversions = 0, constants = 0;  // rows and bytes that follow
};

constexpr std::uint64_t kMaxArea = std::uint64_t{1} << 44;

void require(bool good) {
  if (!good) throw Error(ErrorCode::corrupt, "the setup of batch programs is damaged");
}

}  // namespace

std::vector<std::byte> ProgramSetup::to_bytes() const {
  Header header;
  header.sizes = sizes;
  header.slot_bytes = slot_bytes;
  header.lanes = lanes;
  header.slots = slots;
  header.conversions = conversions.size();
  header.constants = constants.size();
  std::vector<std::byte> bytes(sizeof header + conversions.size() * sizeof(Conversion) +
                               constants.size());
  std::memcpy(bytes.data(), &header, sizeof header);
  if (!conversions.empty())
    std::memcpy(bytes.data() + sizeof header, conversions.data(),
                conversions.size() * sizeof(Conversion));
  if (!constants.empty())
    std::memcpy(bytes.data() + bytes.size() - constants.size(), constants.data(), constants.size());
  return bytes;
}

ProgramSetup ProgramSetup::from_bytes(std::span<const std::byte> bytes) {
  Header header;
  require(bytes.size() >= sizeof header);
  std::memcpy(&header, bytes.data(), sizeof header);
  require(header.magic == Header::kMagic);
  bytes = bytes.subspan(sizeof header);
  require(header.conversions <= bytes.size() / sizeof(Conversion));
  require(header.constants == bytes.size() - header.conversions * sizeof(Conversion) &&
          header.constants == header.sizes.constants);
  const AreaSizes& s = header.sizes;
  for (const std::uint64_t size :
       {s.staging, s.source, s.planes, s.literals, s.runs, s.run_index, s.target, s.batch})
    require(size <= kMaxArea);
  require(header.lanes >= 1 && header.lanes <= 64 && header.slots >= 1 && header.slots <= 4096);
  require(header.slot_bytes <= s.batch / header.slots);
  ProgramSetup setup;
  setup.sizes = s;
  setup.lanes = header.lanes;
  setup.slots = header.slots;
  setup.slot_bytes = header.slot_bytes;
  setup.conversions.resize(header.conversions);
  if (header.conversions > 0)
    std::memcpy(setup.conversions.data(), bytes.data(), header.conversions * sizeof(Conversion));
  bytes = bytes.subspan(header.conversions * sizeof(Conversion));
  setup.constants.assign(bytes.begin(), bytes.end());
  check_conversions(setup.conversions, setup.constants.size());
  return setup;
}

}  // namespace batchfs::gpu
