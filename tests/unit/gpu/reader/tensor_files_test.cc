#include "gpu/reader/tensor_files.h"

#include <cstring>
#include <random>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/base/error.h"

namespace batchfs::reader {
namespace tensor_files_test {

std::shared_ptr<const Mapping> mapped(const std::string& bytes) {
  const int fd = ::memfd_create("test", 0);
  EXPECT_EQ(::write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  auto mapping = Mapping::of_file(fd, bytes.size());
  ::close(fd);
  return mapping;
}

/// Written by numpy.save of np.arange(6, dtype="i4").reshape(2, 3).
std::string numpys() {
  std::string file("\x93NUMPY\x01\x00\x76\x00", 10);
  file += "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }";
  file.resize(127, ' ');
  file += '\n';
  for (std::int32_t i = 0; i < 6; ++i) file.append(reinterpret_cast<const char*>(&i), 4);
  return file;
}

TensorInfo info(const std::string& name, const std::string& dtype,
                std::vector<std::int64_t> shape) {
  return {name, parse_dtype(dtype), std::move(shape), {}};
}

TEST(Npy, IsReadAsNumpyWritesIt) {
  const auto memory = mapped(numpys());
  const TensorInfo expected = info("x", "int32", {8, 3});  // a full batch has more rows
  const Tensor tensor = npy_tensor(*memory, expected);
  EXPECT_EQ(tensor.shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(tensor.bytes, 24u);
  EXPECT_EQ(tensor.data, memory->data() + 128);
  std::int32_t last;
  std::memcpy(&last, tensor.data + 20, 4);
  EXPECT_EQ(last, 5);
}

TEST(Npy, AnotherTypeOrRankIsRefused) {
  const auto memory = mapped(numpys());
  EXPECT_THROW(npy_tensor(*memory, info("x", "float32", {8, 3})), Error);
  EXPECT_THROW(npy_tensor(*memory, info("x", "int32", {8, 3, 1})), Error);
}

TEST(Npy, NeverLeavesItsFile) {
  const std::string good = numpys();
  const TensorInfo expected = info("x", "int32", {8, 3});
  for (std::size_t size = 1; size < good.size(); ++size)
    EXPECT_THROW(npy_tensor(*mapped(good.substr(0, size)), expected), Error) << size;
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string bad = good;
    bad[random() % 128] = static_cast<char>(random());
    const auto memory = mapped(bad);
    try {
      const Tensor tensor = npy_tensor(*memory, expected);
      EXPECT_LE(tensor.data + tensor.bytes, memory->data() + memory->size());
    } catch (const Error&) {
    }
  }
}

std::string safetensors(const std::string& header, std::size_t bytes) {
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(header.size() >> (8 * i));
  return file + header + std::string(bytes, 'd');
}

TEST(Safetensors, TensorsAreFoundByName) {
  Schema schema;
  schema.tensors = {info("b", "int32", {2, 3}), info("a", "bfloat16", {4})};
  const std::string header = R"({"a": {"dtype": "BF16", "shape": [2], "data_offsets": [24, 28]},
                                 "b": {"dtype": "I32", "shape": [2, 3], "data_offsets": [0, 24]}})";
  const auto memory = mapped(safetensors(header, 28));
  const auto tensors = safetensors_tensors(*memory, schema);
  EXPECT_EQ(tensors.at(0).data, memory->data() + 8 + header.size());
  EXPECT_EQ(tensors.at(1).data, memory->data() + 8 + header.size() + 24);
  EXPECT_EQ(tensors.at(1).bytes, 4u);
}

TEST(Safetensors, WhatDoesNotFitIsRefused) {
  Schema schema;
  schema.tensors = {info("a", "int32", {2})};
  for (const char* entry :
       {R"({"shape": [2], "data_offsets": [0, 4]})", R"({"shape": [2], "data_offsets": [24, 32]})",
        R"({"shape": [4611686018427387904, 4], "data_offsets": [0, 8]})",
        R"({"shape": [-2], "data_offsets": [0, 8]})",
        R"({"shape": [2], "data_offsets": [18446744073709551608, 0]})",
        R"({"shape": [2], "data_offsets": [0]})", R"({"shape": 2, "data_offsets": [0, 8]})",
        R"({})", "7"})
    EXPECT_THROW(safetensors_tensors(
                     *mapped(safetensors(std::string("{\"a\": ") + entry + "}", 16)), schema),
                 Error)
        << entry;
  EXPECT_THROW(safetensors_tensors(*mapped(safetensors("{}", 16)), schema), Error);
  EXPECT_THROW(safetensors_tensors(*mapped(std::string(8, '\xff')), schema), Error);
  EXPECT_THROW(safetensors_tensors(*mapped("short"), schema), Error);
}

TEST(Mapping, RefusesAFileThatIsShorter) {
  const int fd = ::memfd_create("test", 0);
  ASSERT_EQ(::ftruncate(fd, 100), 0);
  EXPECT_THROW(Mapping::of_file(fd, 101), Error);
  EXPECT_THROW(Mapping::read_from(fd, 101), Error);
  EXPECT_EQ(Mapping::read_from(fd, 100)->size(), 100u);
  ::close(fd);
}

TEST(Mapping, WritesStayPrivate) {
  const int fd = ::memfd_create("test", 0);
  ASSERT_EQ(::ftruncate(fd, 100), 0);
  const auto one = Mapping::of_file(fd, 100), two = Mapping::of_file(fd, 100);
  const_cast<std::byte*>(one->data())[7] = std::byte{1};
  EXPECT_EQ(two->data()[7], std::byte{0});
  ::close(fd);
}

TEST(Bytes, AreCountedWithoutOverflow) {
  EXPECT_EQ(bytes_of({}, 4), 4u);
  EXPECT_EQ(bytes_of({3, 0, 5}, 4), 0u);
  EXPECT_THROW(bytes_of({INT64_MAX}, 4), Error);
  EXPECT_THROW(bytes_of({1 << 20, 1 << 20, 1 << 20, 1 << 20}, 1), Error);
  EXPECT_THROW(bytes_of({-1}, 4), Error);
}

}  // namespace tensor_files_test
}  // namespace batchfs::reader
