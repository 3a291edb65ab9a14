#include "engine/write/prediction/sample_parts.h"

#include <cstring>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/store/temporary_directory.h"

namespace batchfs {
namespace sample_parts_test {

using testing::ElementsAre;

Buffer buffer_of(const std::string& text) {
  Buffer buffer(text.size());
  std::memcpy(buffer.data(), text.data(), text.size());
  return buffer;
}

std::string text_of(const Buffer& buffer) {
  return {reinterpret_cast<const char*>(buffer.data()), buffer.size()};
}

class SamplePartsTest : public testing::Test {
 protected:
  void put(SampleParts& parts, std::int64_t number,
           const std::map<std::int64_t, std::string>& texts) {
    ObjectSamples samples;
    for (const auto& [sample, text] : texts) samples[sample] = buffer_of(text);
    parts.put("p", number, samples);
  }
  static std::uint64_t three(std::int64_t) { return 3; }

  const TemporaryDirectory directory_;
  const PredictionFolder folder_{directory_ / "o"};
};

TEST_F(SamplePartsTest, PartsOfSeveralRanksAreReadTogether) {
  SampleParts one(folder_, "run", 0), other(folder_, "run", 1);
  EXPECT_TRUE(one.numbers("p").empty());
  put(one, 12, {{3, "abc"}, {-1, "d\ne"}});
  put(one, 12, {{5, "fgh"}});
  put(other, 12, {{4, "ijk"}});
  put(other, 7, {{0, "xyz"}});
  one.lock("p", 7);  // the lock's file is not a part
  EXPECT_THAT(one.numbers("p"), ElementsAre(7, 12));
  EXPECT_THAT(other.samples("p", 12), ElementsAre(-1, 3, 4, 5));
  const ObjectSamples samples = other.read("p", 12, three);
  ASSERT_EQ(samples.size(), 4u);
  EXPECT_EQ(text_of(samples.at(-1)), "d\ne");
  EXPECT_EQ(text_of(samples.at(3)), "abc");
  EXPECT_EQ(text_of(samples.at(4)), "ijk");
  one.discard("p", 12);
  EXPECT_THAT(one.numbers("p"), ElementsAre(7));
  EXPECT_TRUE(one.read("p", 12, three).empty());
}

TEST_F(SamplePartsTest, FilesThatAreNoPartsOfTheRunAreRefused) {
  SampleParts parts(folder_, "run", 0);
  put(parts, 1, {{3, "abc"}});
  EXPECT_THROW(SampleParts(folder_, "other", 0).samples("p", 1), Error);
  EXPECT_THROW(parts.read("p", 1, [](std::int64_t) -> std::uint64_t { return 4; }), Error);
  for (const char* text :
       {"", "x", "[]\n", "{\"run\":\"run\"}\n", "{\"run\":1,\"samples\":[],\"bytes\":[]}\n",
        "{\"run\":\"run\",\"samples\":[1],\"bytes\":[]}\n",
        "{\"run\":\"run\",\"samples\":[1],\"bytes\":[2]}\nabc",
        "{\"run\":\"run\",\"samples\":[1],\"bytes\":[4]}\nabc",
        "{\"run\":\"run\",\"samples\":[1],\"bytes\":[-1]}\nabc",
        "{\"run\":\"run\",\"samples\":[1,2],\"bytes\":[9223372036854775807,9223372036854775807]}\n",
        "{\"run\":\"run\",\"samples\":[1.5],\"bytes\":[3]}\nabc"}) {
    folder_.store().put(".batchfs/parts/p/9/0-1", text);
    if (*text == 0) std::ofstream(folder_.path(".batchfs/parts/p/9/0-1")).flush();
    EXPECT_THROW(parts.samples("p", 9), Error) << text;
  }
}

}  // namespace sample_parts_test
}  // namespace batchfs
