#include "engine/pipeline/batches/deliveries.h"

#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "tests/unit/engine/pipeline/fake_store.h"
#include "tests/unit/engine/pipeline/raw_format.h"

namespace batchfs {
namespace deliveries_test {

std::exception_ptr error(ErrorCode code) { return std::make_exception_ptr(Error(code, "why")); }

class DeliveriesTest : public testing::Test {
 protected:
  const RawTestFormat raw_;
  FakeData data_{10, 4, 6};
  const BatchRequest request_{
      data_.view(R"({"name": "train", "window": {"time": 1}, "batch": 4})"), &raw_, 2, 3, 1, 2};
  Trace trace_;
  int first_ = 0;
  Deliveries deliveries_{trace_, [this] { ++first_; }};
};

TEST_F(DeliveriesTest, CountsTracesAndTellsOfTheFirst) {
  const Batch batch;
  deliveries_.record_delivery(request_, nullptr, Trace::now(), error(ErrorCode::io));
  EXPECT_EQ(first_, 0);
  for (int i = 0; i < 2; ++i) deliveries_.record_delivery(request_, &batch, Trace::now(), nullptr);
  deliveries_.record_values();
  EXPECT_EQ(first_, 1);
  const auto readers = deliveries_.streams().list(Trace::now());
  ASSERT_EQ(readers.size(), 1u);
  EXPECT_EQ(readers[0].view, "train");
  EXPECT_EQ(readers[0].batches, 2u);
  EXPECT_EQ(readers[0].failures, 1u);
  const auto events = trace_.last(UINT64_MAX).events;
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].end, Trace::End::failed);
  EXPECT_EQ(events[1].end, Trace::End::done);
  EXPECT_EQ(events[1].of.batch, 3 * 2 + 1);
  EXPECT_EQ(events[1].of.epoch, 2);
}

TEST_F(DeliveriesTest, AReaderThatWentAwayIsTracedButNotCounted) {
  deliveries_.record_delivery(request_, nullptr, Trace::now(), error(ErrorCode::interrupted));
  EXPECT_TRUE(deliveries_.streams().list(Trace::now()).empty());
  EXPECT_EQ(trace_.last(UINT64_MAX).events.at(0).end, Trace::End::left);
}

TEST_F(DeliveriesTest, NobodyNeedsToBeTold) {
  Deliveries quiet(trace_, nullptr);
  quiet.record_values();
}

}  // namespace deliveries_test
}  // namespace batchfs
