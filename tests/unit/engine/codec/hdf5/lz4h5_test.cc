#include "engine/codec/codecs.h"

#include "tests/unit/engine/codec/damage.h"

// The vector, in Python, of (np.arange(300) % 7).astype("u1") and the 40 bytes below in a file of
// h5py with **hdf5plugin.LZ4(nbytes=100) and chunks=(340,):
// dataset.id.read_direct_chunk((0,))[1].hex()

namespace batchfs {
namespace lz4h5_test {

constexpr const char* kNoise =
    "d9a382454e0a13042cd0a6e9809bf8baa18b8fef47d0ab0064db8d08c3bad82c16dc058a144c7b6c";
constexpr const char* kBlocks =
    "000000000000015400000064000000117f0001020304050607004550040506000100000011"
    "7f02030405060001070045500600010203000000117f04050600010203070045500102030405"
    "00000028";

Bytes vector() { return hex(std::string(kBlocks) + kNoise); }

TEST(Lz4h5, DecodesWhatThePluginWrites) {
  Bytes expected;
  for (int i = 0; i < 300; ++i) expected.push_back(static_cast<std::byte>(i % 7));
  for (const std::byte byte : hex(kNoise)) expected.push_back(byte);
  expect_decodes(*make_codec("imagecodecs_lz4h5"), vector(), expected);
}

TEST(Lz4h5, DamageEndsInAnError) {
  const auto codec = make_codec("imagecodecs_lz4h5");
  EXPECT_TRUE(fails(*codec, vector(), 339));
  EXPECT_TRUE(fails(*codec, hex("000000000000000800000000"), 8));  // blocks of nothing
  EXPECT_TRUE(fails(*codec, hex("ffffffffffffffff00000064"), 8));
  EXPECT_TRUE(fails(*codec, hex("000000000000000800000008ffffffff"), 8));
  for (std::size_t size = 0; size < vector().size(); ++size) {
    Bytes cut = vector();
    cut.resize(size);
    EXPECT_TRUE(fails(*codec, cut, 340)) << size;
  }
}

}  // namespace lz4h5_test
}  // namespace batchfs
