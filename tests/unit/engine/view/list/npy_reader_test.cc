// Files as numpy 2 saves them.
#include "engine/view/list/npy_reader.h"

#include <cstring>
#include <fstream>
#include <numeric>

#include <gtest/gtest.h>

#include "tests/unit/engine/store/temporary_directory.h"

namespace batchfs {
namespace npy_reader_test {

using namespace std::string_literals;

std::string npy(const std::string& dictionary, const std::string& data) {
  std::string header = dictionary;
  header.resize(117, ' ');
  return "\x93NUMPY\x01\x00v\x00"s + header + "\n" + data;
}

std::string dictionary(const std::string& descr, const std::string& shape,
                       const std::string& fortran = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
}

class NpyReaderTest : public testing::Test {
 protected:
  NamedFile& file(const std::string& bytes) {
    const std::string path = folder_ / "a.npy";
    std::ofstream(path, std::ios::binary) << bytes;
    return *(file_ = std::make_unique<NamedFile>(path));
  }
  std::string why_not(const std::string& bytes) {
    try {
      read_npy_header(file(bytes));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_NE(error.where().find("a.npy"), std::string::npos);
      return error.why();
    }
    return "";
  }
  template <class T>
  std::vector<std::int64_t> integers(const std::string& descr, const std::vector<T>& values) {
    std::string data(values.size() * sizeof(T), 0);
    std::memcpy(data.data(), values.data(), data.size());
    NamedFile& opened =
        file(npy(dictionary(descr, "(" + std::to_string(values.size()) + ",)"), data));
    const NpyHeader header = read_npy_header(opened);
    std::vector<std::int64_t> read;
    read_npy_integers(opened, header, [&](std::int64_t first, std::span<const std::int64_t> some) {
      EXPECT_EQ(first, static_cast<std::int64_t>(read.size()));
      read.insert(read.end(), some.begin(), some.end());
    });
    return read;
  }

  const TemporaryDirectory folder_;
  std::unique_ptr<NamedFile> file_;
};

TEST_F(NpyReaderTest, HeadersOfNumpy) {
  NpyHeader header = read_npy_header(file(npy(dictionary("<i4", "(1, 3)"), std::string(12, 0))));
  EXPECT_EQ(header.kind, 'i');
  EXPECT_EQ(header.itemsize, 4);
  EXPECT_FALSE(header.fortran_order);
  EXPECT_EQ(header.shape, (std::vector<std::int64_t>{1, 3}));
  header = read_npy_header(file(npy(dictionary("<f8", "(2, 2)", "True"), std::string(32, 0))));
  EXPECT_TRUE(header.fortran_order);
  header = read_npy_header(file(npy(dictionary("<u8", "()"), std::string(8, 0))));
  EXPECT_TRUE(header.shape.empty());
  EXPECT_EQ(header.elements(), 1);
}

TEST_F(NpyReaderTest, TheSecondFormatHasALongLength) {
  const std::string text = dictionary("|b1", "(2,)") + "\n";
  std::string bytes = "\x93NUMPY\x02\x00"s;
  bytes += static_cast<char>(text.size());
  bytes += "\0\0\0"s + text + "\x01\x00"s;
  EXPECT_EQ(read_npy_header(file(bytes)).kind, 'b');
}

TEST_F(NpyReaderTest, ElementsOfEveryWidth) {
  EXPECT_EQ(integers<std::int8_t>("|i1", {-128, 127}), (std::vector<std::int64_t>{-128, 127}));
  EXPECT_EQ(integers<std::uint8_t>("|u1", {0, 255}), (std::vector<std::int64_t>{0, 255}));
  EXPECT_EQ(integers<std::int16_t>("<i2", {-300, 300}), (std::vector<std::int64_t>{-300, 300}));
  EXPECT_EQ(integers<std::uint32_t>("<u4", {UINT32_MAX}), (std::vector<std::int64_t>{UINT32_MAX}));
  EXPECT_EQ(integers<std::int64_t>("<i8", {INT64_MIN}), (std::vector<std::int64_t>{INT64_MIN}));
  std::vector<std::int32_t> many(300000);
  std::iota(many.begin(), many.end(), -1000);
  EXPECT_EQ(integers<std::int32_t>("<i4", many),
            (std::vector<std::int64_t>(many.begin(), many.end())));
}

TEST_F(NpyReaderTest, FloatsAreNumbers) {
  const float stored[] = {1.5f, -2.25f};
  std::string data(sizeof stored, 0);
  std::memcpy(data.data(), stored, sizeof stored);
  NamedFile& opened = file(npy(dictionary("<f4", "(2,)"), data));
  const NpyHeader header = read_npy_header(opened);
  std::vector<double> read;
  read_npy_numbers(opened, header, [&](std::int64_t, std::span<const double> some) {
    read.assign(some.begin(), some.end());
  });
  EXPECT_EQ(read, (std::vector<double>{1.5, -2.25}));
}

TEST_F(NpyReaderTest, OtherElementsAreRefused) {
  EXPECT_NE(why_not(npy(dictionary("<U1", "(1,)"), "a\0\0\0"s)).find("'<U1'"), std::string::npos);
  EXPECT_NE(why_not(npy(dictionary(">i4", "(1,)"), "\0\0\0\1"s)).find("'>i4'"), std::string::npos);
  EXPECT_NE(why_not(npy(dictionary("<f2", "(1,)"), "\0\0"s)).find("'<f2'"), std::string::npos);
  EXPECT_NE(why_not(npy("{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (1,), }",
                        "\0\0\0\0"s))
                .find("structured"),
            std::string::npos);
}

TEST_F(NpyReaderTest, HostileFilesAreRefused) {
  const std::string good = npy(dictionary("<i4", "(3,)"), std::string(12, 0));
  EXPECT_EQ(why_not(good), "");
  for (std::size_t length = 0; length < good.size(); ++length)
    EXPECT_NE(why_not(good.substr(0, length)), "") << length;
  EXPECT_NE(why_not(good + "x"), "");
  EXPECT_NE(why_not("PK" + good.substr(2)).find("does not begin"), std::string::npos);
  for (const char* shape : {"(-1,)", "(3", "3", "(3,,)", "(1e9,)", "(99999999999999999999,)",
                            "(4294967296, 4294967296, 4294967296)", "(9223372036854775807,)"})
    EXPECT_NE(why_not(npy(dictionary("<i4", shape), std::string(12, 0))), "") << shape;
  EXPECT_NE(why_not(npy("{'descr': '<i4', 'shape': (3,), }", std::string(12, 0)))
                .find("no 'fortran_order'"),
            std::string::npos);
  EXPECT_NE(why_not("\x93NUMPY\x02\x00\xff\xff\xff\xff"s + std::string(100, ' ')).find("bytes"),
            std::string::npos);
}

}  // namespace npy_reader_test
}  // namespace batchfs
