// The C interface: the description of a batch, errors, and callers compiled with other versions of
// its structs.
#include "gpu/reader/batchfs_reader.h"

#include <cerrno>
#include <cstddef>

#include <gmock/gmock.h>

#include "tests/unit/gpu/handoff/client.h"

namespace batchfs::reader {
namespace c_interface_test {

using namespace handoff;
using testing::HasSubstr;

constexpr const char* kView =
    R"({"window": {"time": 1}, "batch": 4, "order": {"shuffle": "none"}})";

/// A reader of a server's only view, and its first batch.
struct Opened {
  Opened() {
    EXPECT_EQ(batchfs_open(served.server->path().c_str(), nullptr, &reader), 0) << batchfs_error();
    EXPECT_EQ(batchfs_get(reader, 0, 0, &batch), 0) << batchfs_error();
  }
  ~Opened() {
    batchfs_release(batch);
    batchfs_close(reader);
  }

  Served served{{kView}};
  batchfs_reader* reader = nullptr;
  batchfs_batch* batch = nullptr;
};

TEST(CInterface, ReadsBatches) {
  Served served({kView});
  batchfs_reader* reader = nullptr;
  batchfs_options options{};
  options.size = sizeof options;
  options.rank = 1;
  options.world = 2;
  ASSERT_EQ(batchfs_open(served.server->path().c_str(), &options, &reader), 0) << batchfs_error();
  EXPECT_EQ(batchfs_batches(reader), 10);
  EXPECT_EQ(batchfs_rank_batches(reader, 3), 3);
  EXPECT_STREQ(batchfs_mode(reader), "shm");
  EXPECT_STREQ(batchfs_why_copied(reader), "");
  EXPECT_THAT(batchfs_schema(reader), HasSubstr("\"batches\""));
  ASSERT_EQ(batchfs_start(reader, 0, 0), 0);
  batchfs_batch* batch = nullptr;
  std::vector<batchfs_batch*> held;
  while (batchfs_next(reader, &batch) == 0 && batch != nullptr) held.push_back(batch);
  ASSERT_EQ(held.size(), 5u);
  batchfs_batch* single = nullptr;
  ASSERT_EQ(batchfs_get(reader, 0, 9, &single), 0);
  held.push_back(single);
  batchfs_close(reader);  // batches outlive it
  for (std::size_t i = 0; i < held.size(); ++i) {
    batchfs_batch_info info{sizeof info};
    ASSERT_EQ(batchfs_info(held[i], &info), 0);
    EXPECT_EQ(info.size, sizeof info);
    EXPECT_EQ(info.epoch, 0);
    EXPECT_EQ(info.number, i < 5 ? static_cast<std::int64_t>(1 + 2 * i) : 9);
    EXPECT_EQ(info.samples, 4);
    EXPECT_EQ(info.tensors, 1);
    batchfs_tensor tensor{sizeof tensor};
    ASSERT_EQ(batchfs_get_tensor(held[i], "v", &tensor), 0);
    EXPECT_EQ(tensor.size, sizeof tensor);
    EXPECT_STREQ(tensor.name, "v");
    EXPECT_STREQ(tensor.dtype, "int32");
    EXPECT_EQ(tensor.itemsize, 4u);
    EXPECT_EQ(tensor.dlpack_code, 0);  // kDLInt
    EXPECT_EQ(tensor.ndim, 3);
    EXPECT_EQ(tensor.shape[0], 4);
    EXPECT_EQ(tensor.strides[0], 24);
    EXPECT_EQ(tensor.strides[2], 4);
    EXPECT_EQ(tensor.nbytes, 96u);
    EXPECT_EQ(tensor.dlpack_device, 1);  // kDLCPU
    EXPECT_EQ(tensor.device_number, 0);
    EXPECT_EQ(static_cast<const std::int32_t*>(tensor.data)[0], first_value(4 * info.number));
    EXPECT_EQ(batchfs_tensor_at(held[i], 1, &tensor), ENOENT);
    batchfs_release(held[i]);
  }
  EXPECT_TRUE(eventually([&] { return served.server->statistics().readers == 0; }));
}

TEST(CInterface, TellsSamplesAndLabels) {
  Opened opened;
  batchfs_batch* batch = nullptr;
  ASSERT_EQ(batchfs_get(opened.reader, 0, 3, &batch), 0);
  const std::int64_t* numbers = nullptr;
  ASSERT_EQ(batchfs_batch_samples(batch, &numbers), 0) << batchfs_error();
  EXPECT_EQ(std::vector(numbers, numbers + 4), (std::vector<std::int64_t>{12, 13, 14, 15}));
  batchfs_label label{};
  EXPECT_EQ(batchfs_batch_label(batch, 2, "time", &label), EINVAL) << "its size is not set";
  label.size = sizeof label;
  ASSERT_EQ(batchfs_batch_label(batch, 2, "time", &label), 0) << batchfs_error();
  EXPECT_EQ(label.type, BATCHFS_LABEL_POSITION);  // `time` has no coordinate
  EXPECT_EQ(label.integer, 14);
  EXPECT_EQ(label.number, 14.0);
  EXPECT_EQ(batchfs_batch_label(batch, 4, "time", &label), ENOENT);
  EXPECT_EQ(batchfs_batch_label(batch, 0, "x", &label), ENOENT);
  EXPECT_EQ(batchfs_batch_label(batch, 0, nullptr, &label), EINVAL);
  EXPECT_EQ(batchfs_batch_samples(batch, nullptr), EINVAL);
  batchfs_release(batch);
}

TEST(CInterface, SaysWhyItFails) {
  batchfs_reader* reader = nullptr;
  EXPECT_EQ(batchfs_open("/nowhere", nullptr, &reader), ENOENT);
  EXPECT_EQ(reader, nullptr);
  EXPECT_THAT(batchfs_error(), HasSubstr("/nowhere"));
  EXPECT_EQ(batchfs_open(nullptr, nullptr, &reader), EINVAL);
  Opened opened;
  batchfs_batch* batch = opened.batch;
  EXPECT_EQ(batchfs_get(opened.reader, 0, 10, &batch), ENOENT);
  EXPECT_EQ(batch, nullptr);
  EXPECT_THAT(batchfs_error(), HasSubstr("10"));
}

TEST(CInterface, ASizeThatIsNotSetIsRefused) {
  Opened opened;
  batchfs_reader* reader = nullptr;
  batchfs_options options{};
  EXPECT_EQ(batchfs_open("/", &options, &reader), EINVAL);
  EXPECT_STREQ(batchfs_error(), "batchfs_options::size is not set");
  batchfs_tensor tensor{};
  EXPECT_EQ(batchfs_get_tensor(opened.batch, "v", &tensor), EINVAL);
  EXPECT_STREQ(batchfs_error(), "batchfs_tensor::size is not set");
  EXPECT_EQ(batchfs_tensor_at(opened.batch, 0, &tensor), EINVAL);
  EXPECT_EQ(tensor.name, nullptr);
  batchfs_batch_info info{};
  EXPECT_EQ(batchfs_info(opened.batch, &info), EINVAL);
  EXPECT_STREQ(batchfs_error(), "batchfs_batch_info::size is not set");
}

/// A struct of a later version of the header, with `Struct` at its beginning.
template <class Struct>
struct Later {
  Struct known{};
  std::int64_t newer[3] = {-1, -1, -1};
};

TEST(CInterface, ACallerThatKnowsMoreGetsZeroForIt) {
  Opened opened;
  Later<batchfs_tensor> tensor;
  tensor.known.size = sizeof tensor;
  ASSERT_EQ(batchfs_get_tensor(opened.batch, "v", &tensor.known), 0) << batchfs_error();
  EXPECT_EQ(tensor.known.size, sizeof tensor);
  EXPECT_EQ(tensor.known.nbytes, 96u);
  EXPECT_THAT(tensor.newer, testing::Each(0));
  Later<batchfs_batch_info> info;
  info.known.size = sizeof info;
  ASSERT_EQ(batchfs_info(opened.batch, &info.known), 0) << batchfs_error();
  EXPECT_EQ(info.known.samples, 4);
  EXPECT_THAT(info.newer, testing::Each(0));
}

TEST(CInterface, ACallerThatKnowsLessIsGivenLess) {
  Opened opened;
  // Memory after the struct that the caller was compiled with belongs to the caller.
  Later<batchfs_tensor> tensor;
  tensor.known.size = sizeof tensor.known;
  ASSERT_EQ(batchfs_get_tensor(opened.batch, "v", &tensor.known), 0) << batchfs_error();
  EXPECT_THAT(tensor.newer, testing::Each(-1));
  // The options before "device" was added.
  const batchfs_options options{offsetof(batchfs_options, device),   nullptr,   0, 1, 0, "shm",
                                reinterpret_cast<const char*>(0x55), UINT64_MAX};
  batchfs_reader* reader = nullptr;
  EXPECT_EQ(batchfs_open(opened.served.server->path().c_str(), &options, &reader), 0)
      << batchfs_error();
  batchfs_close(reader);
}

}  // namespace c_interface_test
}  // namespace batchfs::reader
