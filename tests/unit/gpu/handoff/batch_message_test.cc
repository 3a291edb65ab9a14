#include "gpu/handoff/batch_message.h"

#include <cstring>

#include <gmock/gmock.h>

#include "engine/base/error.h"
#include "tests/unit/engine/view/assembled.h"

namespace batchfs::handoff {
namespace batch_message_test {

using testing::ElementsAre;
using testing::IsEmpty;

template <class T>
T read(const Outgoing& out, std::size_t at) {
  T value;
  EXPECT_LE(at + sizeof value, out.bytes.size());
  std::memcpy(&value, out.bytes.data() + at, sizeof value);
  return value;
}

class BatchMessages : public testing::Test {
 protected:
  BatchMessages() {
    data_.declare("v", "<f4", {"time", "x"}, {10, 3}, {10, 3});
    shared.view = parse_view(
        data_.dataset(), R"({"window": {"time": 1}, "batch": {"size": 4, "remainder": "keep"}})");
    shared.remainder = Remainder::keep;
  }
  DeliveredBatch delivered(MemoryKind kind, std::uint64_t id, bool transient) const {
    DeliveredBatch made;
    made.memories = {{id, 4096, kind, 77, transient}};
    made.tensors = {{0, 64, 48}};
    return made;
  }
  static BatchMessage numbers(std::int64_t batch) {
    BatchMessage message{};
    message.lease = 5;
    message.batch = batch;
    return message;
  }

  MemoryData data_;
  SharedView shared{};
  AttachedMemory attached;
};

TEST_F(BatchMessages, SayWhereEachTensorIsAndItsShape) {
  const Outgoing out =
      batch_message(shared, delivered(MemoryKind::host, 3, true), numbers(0), 1, attached, {});
  const auto message = read<BatchMessage>(out, 0);
  EXPECT_EQ(message.header.length, out.bytes.size());
  EXPECT_EQ(message.lease, 5u);
  EXPECT_EQ(message.samples, 4);
  EXPECT_EQ(message.memory_count, 1u);
  EXPECT_EQ(message.tensor_count, 1u);
  std::size_t at = sizeof message;
  EXPECT_EQ(read<MemoryRecord>(out, at).id, 3u);
  at += sizeof(MemoryRecord);
  const auto tensor = read<TensorRecord>(out, at);
  EXPECT_EQ(tensor.offset, 64u);
  EXPECT_EQ(tensor.bytes, 48u);
  at += sizeof tensor;
  const Dims shape = shared.view->shapes(0).front();
  ASSERT_EQ(message.dim_count, shape.size());
  for (const std::int64_t n : shape) {
    EXPECT_EQ(read<std::int64_t>(out, at), n);
    at += sizeof n;
  }
  EXPECT_EQ(at, out.bytes.size()) << "version 1 has no windows behind the shapes";
}

TEST_F(BatchMessages, TheLastBatchHasTheSamplesThatRemain) {
  const Outgoing out =
      batch_message(shared, delivered(MemoryKind::host, 3, true), numbers(2), 2, attached, {});
  EXPECT_EQ(read<BatchMessage>(out, 0).samples, 2);
}

TEST_F(BatchMessages, MemoryThatTheReaderKeepsIsAttachedOnce) {
  const auto message = [&](std::uint64_t id) {
    return batch_message(shared, delivered(MemoryKind::host, id, false), numbers(0), 1, attached,
                         {});
  };
  const Outgoing first = message(3), again = message(3), another = message(4);
  EXPECT_THAT(first.descriptors, ElementsAre(77));
  EXPECT_EQ(read<MemoryRecord>(first, sizeof(BatchMessage)).flags, kMemoryAttached);
  EXPECT_THAT(again.descriptors, IsEmpty());
  EXPECT_EQ(read<MemoryRecord>(again, sizeof(BatchMessage)).flags, 0u);
  EXPECT_THAT(another.descriptors, ElementsAre(77));
}

TEST_F(BatchMessages, WhatCannotBeSentAttachesNothing) {
  DeliveredBatch many = delivered(MemoryKind::host, 3, false);
  for (std::uint64_t id = 0; id <= kMaxDescriptors; ++id)
    many.memories.push_back({100 + id, 4096, MemoryKind::host, 77, true});
  EXPECT_THROW(batch_message(shared, many, numbers(0), 1, attached, {}), Error);
  EXPECT_THAT(attached, IsEmpty());
  const Outgoing out =
      batch_message(shared, delivered(MemoryKind::host, 3, false), numbers(0), 1, attached, {});
  EXPECT_THAT(out.descriptors, ElementsAre(77));
}

}  // namespace batch_message_test
}  // namespace batchfs::handoff
