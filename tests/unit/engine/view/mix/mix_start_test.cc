#include "engine/view/mix/mix_start.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace mix_start_test {

using testing::ElementsAre;
using testing::HasSubstr;

MixStart parsed(const std::string& text) {
  const Json json = Json::parse(text);
  return parse_mix_start(JsonRef(json, "start.a"));
}

std::string refused(const std::string& text) {
  return error_of([&] { parsed(text); }).why();
}

TEST(MixStart, ANumberIsOfSamplesThatWereAllRead) {
  const MixStart start = parsed("7");
  EXPECT_EQ(start.ordinal(0), 7u);
  EXPECT_EQ(start.ordinal(3), 10u);
  EXPECT_EQ(MixStart().ordinal(5), 5u);
}

TEST(MixStart, WhatIsLeftComesFirst) {
  const MixStart start = parsed(R"({"samples": 10, "left": [3, 8]})");
  std::vector<std::int64_t> ordinals;
  for (unsigned i = 0; i < 5; ++i) ordinals.push_back(static_cast<std::int64_t>(start.ordinal(i)));
  EXPECT_THAT(ordinals, ElementsAre(3, 8, 10, 11, 12));
}

TEST(MixStart, IsWrittenAsItIsRead) {
  for (const char* text : {"0", "12", R"({"samples":10,"left":[0,9]})"})
    EXPECT_EQ(parsed(text).json().dump(), text);
  EXPECT_EQ(parsed(R"({"samples": 4, "left": []})").json(), 4);
}

TEST(MixStart, OfLateEpochsIsExact) {
  const MixStart start = parsed(R"({"samples": 1152921504606846976, "left": [5]})");
  const auto late = static_cast<unsigned __int128>(UINT64_MAX) * 3;
  EXPECT_EQ(start.ordinal(late), (static_cast<unsigned __int128>(1) << 60) + late - 1);
}

TEST(MixStart, Refusals) {
  EXPECT_THAT(refused("-1"), HasSubstr("start.a: "));
  EXPECT_THAT(refused(R"("7")"), HasSubstr("start.a: "));
  EXPECT_THAT(refused(R"({"left": [1]})"), HasSubstr("samples"));
  EXPECT_THAT(refused(R"({"samples": 9, "leftt": [1]})"), HasSubstr("did you mean 'left'"));
  EXPECT_THAT(refused(R"({"samples": 9, "left": [9]})"),
              HasSubstr("start.a.left[0]: 9 is not below \"samples\", 9"));
  EXPECT_THAT(refused(R"({"samples": 9, "left": [4, 4]})"), HasSubstr("start.a.left[1]: "));
  EXPECT_THAT(refused(R"({"samples": 9, "left": [-1]})"), HasSubstr("start.a.left[0]: "));
}

}  // namespace mix_start_test
}  // namespace batchfs
