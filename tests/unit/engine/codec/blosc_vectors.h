#pragma once
// Frames of Blosc as numcodecs writes them.
//
// In Python:
// import numpy as np; from numcodecs import Blosc
// a = (np.arange(96) // 5).astype("<i4")
// b = (np.arange(40000) // 4000).astype("<u2")

#include "tests/unit/engine/codec/damage.h"

namespace batchfs {
namespace blosc_test {

inline Bytes small() {
  std::vector<std::int32_t> a;
  for (int i = 0; i < 96; ++i) a.push_back(i / 5);
  return bytes_of(a);
}

inline Bytes blocks() {
  std::vector<std::uint16_t> b;
  for (int i = 0; i < 40000; ++i) b.push_back(static_cast<std::uint16_t>(i / 4000));
  return bytes_of(b);
}

struct Vector {
  const char* name;
  Bytes encoded;
  std::size_t block = 384;
};

/// Every inner codec with every shuffle, and uncompressed frames.
inline std::vector<Vector> vectors() {
  return {
      {"Blosc('blosclz', 5, 0).encode(a)", hex("020110048001000080010000910000001400000079000000230"
                                               "0000000e00703010100e00903010200e00903"
                                               "010300e00903010400e00903010500e00903010600e00903010"
                                               "700e00903010800e00903010900e00903010a"
                                               "00e00903010b00e00903010c00e00903010d00e00903010e00e"
                                               "00903010f00e00903011000e00903011100e0"
                                               "0903011200e009030313000000")},
      {"Blosc('blosclz', 5, 1).encode(a)", hex("02011104800100008001000084000000140000006c0000003f0"
                                               "0000000000101010101020202020203030303"
                                               "030404040404050505050506061f06060607070707070808080"
                                               "80809090909090a0a0a0a0a0b0b0b0b0b0c0c"
                                               "0c0c1f0c0d0d0d0d0d0e0e0e0e0e0f0f0f0f0f1010101010111"
                                               "1111111121212121213605fe0ff1101010000")},
      {"Blosc('blosclz', 5, 2).encode(a)",
       hex("02011404800100008001000046000000140000002e00000024e0830f3ef8a0040400fc0fc0ffa004040000f"
           "0"
           "ffffa004600104ffffffffff6009a001e0050de0ff2e01010000")},
      {"Blosc('lz4', 5, 0).encode(a)",
       hex("0201300480010000800100007c00000014000000640000001f000100001f010400001f020400001f0304000"
           "0"
           "1f040400001f050400001f060400001f070400001f080400001f090400001f0a0400001f0b0400001f0c040"
           "0"
           "001f0d0400001f0e0400001f0f0400001f100400001f110400001e120400500013000000")},
      {"Blosc('lz4', 5, 1).encode(a)",
       hex("02013104800100008001000073000000140000005b000000100001001001010010020100100301001004010"
           "0"
           "1005010010060100100701001008010010090100100a0100100b0100100c0100100d0100100e0100100f010"
           "0"
           "10100100101101001012010010135f000f0200ff05500000000000")},
      {"Blosc('lz4', 5, 2).encode(a)",
       hex("0201340480010000800100004b000000140000003300000053e0830f3ef805005300fc0fc0ff0500530000f"
           "0"
           "ffff050001020010ff0100010a000302000a0e000f0200ff21500000000000")},
      {"Blosc('lz4hc', 5, 0).encode(a)",
       hex("0201300480010000800100007c00000014000000640000001f000100001f010400001f020400001f0304000"
           "0"
           "1f040400001f050400001f060400001f070400001f080400001f090400001f0a0400001f0b0400001f0c040"
           "0"
           "001f0d0400001f0e0400001f0f0400001f100400001f110400001e120400500013000000")},
      {"Blosc('lz4hc', 5, 1).encode(a)", hex("02013104800100008001000071000000140000005900000010000"
                                             "10010010100100201001003010010040100"
                                             "1005010010060100100701001008010010090100100a0100100b0"
                                             "100100c0100100d0100100e0100100f0100"
                                             "1010010010110100101201002f13000100ff08500000000000")},
      {"Blosc('lz4hc', 5, 2).encode(a)",
       hex("02013404800100008001000049000000140000003100000053e0830f3ef805005300fc0fc0ff0500530000f"
           "0"
           "ffff050001010010ff0100170001000a0e000f0100ff21500000000000")},
      {"Blosc('zlib', 5, 0).encode(a)",
       hex("0201700480010000800100004c0000001400000034000000785e6dc3411240200000c0104522f9ff5f75b73"
           "b"
           "b321fc4d38e3821157dc3061c61d0f2c7862c50b6f6cf860c777fc00b1cf036b")},
      {"Blosc('zlib', 5, 1).encode(a)",
       hex("0201710480010000800100004a0000001400000032000000785eedc1090180201000b0c30f155fe8df5557c"
           "0"
           "046e11af4447cfc0c844666661a5b0b1737072715369f1fbf400450c036b")},
      {"Blosc('zlib', 5, 2).encode(a)", hex("02017404800100008001000042000000140000002a000000785e7b"
                                            "d0cc6ff7e3018460f8c37fe03f946060f8"
                                            "f0ff3f940083ff20c080045079a3803c0000939f1a19")},
      {"Blosc('zstd', 5, 0).encode(a)",
       hex("0201900480010000800100004b000000140000003300000028b52ffd6080004d0100c000000102030405060"
           "7"
           "08090a0b0c0d0e0f1011121300000013a810f806f0c510fe1d1fded12f4b01")},
      {"Blosc('zstd', 5, 1).encode(a)",
       hex("0201910480010000800100004e000000140000003600000028b52ffd608000650100c800000000000102030"
           "4"
           "05060708090a0b0c0d0e0f1011121300139810e8cb010010f8faffffdf011ca7450a")},
      {"Blosc('zstd', 5, 2).encode(a)",
       hex("02019404800100008001000047000000140000002f00000028b52ffd6080002d010088e0830f3ef800fc0fc"
           "0"
           "ff0000f0ffffff00082070931d35a81024c4652cecaccf1a99d602")},
      {"Blosc('lz4', 0).encode(a)", hex("0201330480010000800100009001000000000000000000000000000000"
                                        "000000000000000100000001000000"
                                        "0100000001000000010000000200000002000000020000000200000002"
                                        "000000030000000300000003000000"
                                        "0300000003000000040000000400000004000000040000000400000005"
                                        "000000050000000500000005000000"
                                        "0500000006000000060000000600000006000000060000000700000007"
                                        "000000070000000700000007000000"
                                        "0800000008000000080000000800000008000000090000000900000009"
                                        "00000009000000090000000a000000"
                                        "0a0000000a0000000a0000000a0000000b0000000b0000000b0000000b"
                                        "0000000b0000000c0000000c000000"
                                        "0c0000000c0000000c0000000d0000000d0000000d0000000d0000000d"
                                        "0000000e0000000e0000000e000000"
                                        "0e0000000e0000000f0000000f0000000f0000000f0000000f00000010"
                                        "000000100000001000000010000000"
                                        "1000000011000000110000001100000011000000110000001200000012"
                                        "000000120000001200000012000000"
                                        "13000000")},
      {"Blosc('zstd', 9, 1).encode(a.view('u1'))",
       hex("02019101800100008001000042000000140000002a00000028b52ffd608000050100b800010203040506070"
           "8"
           "090a0b0c0d0e0f10111213000000136401f00d10170b")},
  };
}

/// `b` in several blocks, the last of them short.
inline std::vector<Vector> in_blocks() {
  return {
      {"Blosc('blosclz', 9, 0, 256).encode(b)",
       hex("020100028038010000000100b20100001800000064010000a20000002300000000e0fffffffffffffffffff"
           "f"
           "ffffffffffffffffffffffffffffffffffffffffff5103010001e0fffffffffffffffffffffffffffffffff"
           "f"
           "ffffffffffffffffffffffffffff5401010002e0fffffffffffffffffffffffffffffffffffffffffffffff"
           "f"
           "ffffffffffffff5401010003e0fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
           "f"
           "5401010004e0fffff50102000400a20000002304000400e0fffffffffffffffffffffffffffffffffffffff"
           "f"
           "ffffffffffffffff4e03010005e0fffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
           "f"
           "ff5401010006e0ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff5401010007e"
           "0"
           "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff5401010008e0fffffffffff80"
           "1"
           "020008004a0000002308000800e0ffffffffffffffffffffffffffffffffffffffffffffffffff4b0301000"
           "9"
           "e0ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff520102000900"),
       65536},
      {"Blosc('lz4', 9, 0, 256).encode(b)",
       hex("020120028038010000000100a8010000180000005b0100009d0000001f000100fffffffffffffffffffffff"
           "f"
           "ffffffffffffffffffffffffffffffffffffff4b1f010200fffffffffffffffffffffffffffffffffffffff"
           "f"
           "ffffffffffffffffffffff4b1f020200fffffffffffffffffffffffffffffffffffffffffffffffffffffff"
           "f"
           "ffffff4b1f030200ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff4b1f04020"
           "0"
           "ffffe95000040004009e0000002f04000200fffffffffffffffffffffffffffffffffffffffffffffffffff"
           "f"
           "ffff471f050200ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff4b1f060200f"
           "f"
           "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff4b1f070200fffffffffffffffff"
           "f"
           "ffffffffffffffffffffffffffffffffffffffffffff4b1f080200ffffffffffec500008000800490000002"
           "f"
           "08000200ffffffffffffffffffffffffffffffffffffffffffffffffff441f090200fffffffffffffffffff"
           "f"
           "ffffffffffffffffffffffffffffffffffffffffff46500009000900"),
       65536},
      {"Blosc('lz4', 9, 2, 256).encode(b)",
       hex("020124028038010000000100d80100001800000079010000ce0000001f000100ffe11fff0100ffe10fe703f"
           "f"
           "e11f00e703ffe10fe803ffffffffffffffffffbb0f0200ffff430f0c0effe20f0200ffe20f3c06ffff430f0"
           "2"
           "00ff820fdc05ffe20f0200ffe20f7c05ff820f0200ffffffffffff8f0f240affe20f0200ffffffffffce0f6"
           "c"
           "0effffffffffff8f0f0200ffffffffffffffffff5a0fdc154d0fc409ffffffffffffffffff5a0f0200fffff"
           "f"
           "fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
           "f"
           "ffffffffffffffba5000000000008b0000001f000100fffffffffffffffffffffffffffffffffffffffffff"
           "f"
           "fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
           "f"
           "fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
           "f"
           "ffffffffffffffffffffffffffffffffffff675000000000005b0000001f000100ff811fff0100ffe10f870"
           "3"
           "ff810f0200ffffffffff6f0f0309ffe10f0200ff830f0509ffffffffff6f0f0200fffffffffffffffffffff"
           "f"
           "ffffffffffffffffffffffffffffffffffffffffffffffffffef500000000000"),
       65536},
      {"Blosc('zlib', 9, 1, 256).encode(b)",
       hex("020161028038010000000100c9000000180000009a0000004600000078daedc1490100201004a0f5b67f626"
           "3"
           "cc43a00a000000486b000000405c07000000e206000000103701000080b805000000c46d00000020ee00000"
           "0"
           "0071173ef600f765cd903400000078daedc101010000008090feafee080a000000000000000000000000000"
           "0"
           "000000000000000000000000000000000018800000012b00000078daedc1a1010000080320e3fcff618b3f6"
           "8"
           "00120000801f1a0000003857000000000000006b003da1f1a1"),
       65536},
      {"Blosc('zstd', 9, 1, 16384).encode(b)",
       hex("020191028038010000400000c8000000240000004b0000006b000000a80000008b0000002300000028b52ff"
           "d"
           "60003fcd0000180001020580903e5d007a3a3f00aacf0314e7819ff33e40011c00000028b52ffd60003f950"
           "0"
           "00200203040004500100fcdff3a99cf7b9ed071c00000028b52ffd60003f950000200405060004500100fcd"
           "f"
           "f3a838ef73d80f1900000028b52ffd6080377d000018080900035001003cdc73dee7a41f1c00000028b52ff"
           "d"
           "60003f950000200607080004500100fcdff3ab38ef73d50f"),
       16384},
      {"Blosc('zstd', 9, 2, 16384).encode(b)",
       hex("020194028038010000400000fa00000024000000740000004a000000ca000000a00000002200000028b52ff"
           "d"
           "60003fc500001800ff000580903efd13f054b041fef9830a1ea8e15580022600000028b52ffd60003fe5000"
           "0"
           "2000ff00ff06a0703eb0f373fd0f9efe4ba888f0e75fc1abc02aad012800000028b52ffd60003ff50000280"
           "0"
           "ff00ff0007a0603ec0f31efd0f9e1666f8f35731af88e0d5d86a17012600000028b52ffd608037e50000200"
           "0"
           "ff00ff06a0703eb0f3734d039e806cca87a466f8875721555a032c00000028b52ffd60003f1501001800fff"
           "f"
           "0880401ffd0bf0068c91ff074c9ddd4a9403e47f822ba2020fd450553002"),
       16384},
  };
}

}  // namespace blosc_test
}  // namespace batchfs
