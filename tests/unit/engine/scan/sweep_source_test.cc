#include "engine/scan/sweep_source.h"

#include <cmath>
#include <future>

#include <gmock/gmock.h>

#include "engine/base/log.h"
#include "tests/unit/engine/pipeline/fake_store.h"

namespace batchfs {
namespace sweep_source_test {

using testing::ElementsAre;

std::vector<double> read(const SweepSource& source, const Box& box) {
  Log log;
  Engine engine({.threads = 2, .memory = 1 << 20, .prefetch = false}, log);
  auto values = std::make_shared<Buffer>(static_cast<std::size_t>(box.elements()) * 8);
  std::promise<std::exception_ptr> done;
  source.read(engine, box, values, [&](std::exception_ptr error) { done.set_value(error); });
  if (const std::exception_ptr error = done.get_future().get()) std::rethrow_exception(error);
  const auto* numbers = reinterpret_cast<const double*>(values->data());
  return {numbers, numbers + box.elements()};
}

// FakeData(4, 3, 5): "v" (time 12, x 5) in 4 chunks of 3 times; element i of chunk c is 1000 c + i.

struct Sources : testing::Test {
  const FakeData data{4, 3, 5};
  const Box box{{2, 1}, {2, 3}};
};

TEST_F(Sources, OfAnArrayAreItsChunks) {
  const auto source = array_source(data.dataset->variable("v"));
  EXPECT_EQ(source->name(), "v");
  EXPECT_EQ(source->chunk_shape(), (Dims{3, 5}));
  EXPECT_EQ(source->chunk_elements(), 15u);
  EXPECT_THAT(read(*source, box), ElementsAre(11, 12, 13, 1001, 1002, 1003));
}

TEST_F(Sources, OfAChannelOfVariablesAreCombined) {
  const auto view = data.view(R"({"window": {"time": 1}, "tensors": {"a": {"variables": [
      {"make": "difference", "of": ["v", "v"]}, {"make": "sum", "of": ["v", "v", "v"]}],
      "stack": "c"}}})");
  EXPECT_THAT(read(*made_source(*view, 0), box), testing::Each(0));
  const auto sum = made_source(*view, 1);
  EXPECT_EQ(sum->name(), "sum");
  EXPECT_EQ(sum->chunk_shape(), (Dims{3, 5}));
  EXPECT_THAT(read(*sum, box), ElementsAre(33, 36, 39, 3003, 3006, 3009));
}

TEST_F(Sources, OfLogarithmsAreThoseOfTheirValues) {
  const auto source = logarithms_of(array_source(data.dataset->variable("v")), 2);
  EXPECT_EQ(source->chunk_shape(), (Dims{3, 5}));
  EXPECT_THAT(read(*source, box),
              ElementsAre(std::log1p(11 / 2.), std::log1p(12 / 2.), std::log1p(13 / 2.),
                          std::log1p(1001 / 2.), std::log1p(1002 / 2.), std::log1p(1003 / 2.)));
  data.store->failing = 0;
  EXPECT_THROW(read(*source, box), Error);
}

TEST_F(Sources, ThatFailSaySo) {
  const auto view = data.view(
      R"({"window": {"time": 1}, "tensors": {"a": {"variables": [{"make": "sum", "of": ["v", "v"]}]}}})");
  data.store->failing = 0;
  EXPECT_THROW(read(*made_source(*view, 0), box), Error);
}

}  // namespace sweep_source_test
}  // namespace batchfs
