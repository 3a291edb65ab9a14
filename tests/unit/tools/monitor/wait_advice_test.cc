#include "tools/monitor/wait_advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace batchfs {
namespace wait_advice_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

WaitFacts waiting() {
  WaitFacts facts;
  facts.gets = 100;
  facts.wait_share = 0.5;
  facts.threads = 4;
  facts.processors = 16;
  facts.decode_amplification = facts.fetch_amplification = 1;
  facts.readers = 1;
  return facts;
}

TEST(WaitAdvice, NothingWasRead) {
  EXPECT_THAT(wait_advice({}), testing::ElementsAre(HasSubstr("No batch was read")));
}

TEST(WaitAdvice, NobodyWaited) {
  WaitFacts facts = waiting();
  facts.wait_share = 0.004;
  EXPECT_THAT(wait_advice(facts),
              testing::ElementsAre(HasSubstr("0.4 % of their time: batches were ready")));
}

TEST(WaitAdvice, DecodingWithThreadsToSpare) {
  WaitFacts facts = waiting();
  facts.decode_bound = 0.9;
  EXPECT_THAT(wait_advice(facts)[0],
              AllOf(HasSubstr("waited 50 % of their time, mostly for decoding"),
                    HasSubstr("Use 4 more threads (--threads 8)"), Not(HasSubstr("order"))));
}

TEST(WaitAdvice, DecodingMoreThanIsUsed) {
  WaitFacts facts = waiting();
  facts.decode_bound = 0.9;
  facts.threads = facts.processors;
  facts.decode_amplification = 6.25;
  EXPECT_THAT(wait_advice(facts)[0],
              AllOf(HasSubstr("6.2 bytes were decoded for each"), HasSubstr("order \"block\""),
                    Not(HasSubstr("more thread"))));
}

TEST(WaitAdvice, AllProcessorsDecodeWhatIsUsed) {
  WaitFacts facts = waiting();
  facts.decode_bound = 0.9;
  facts.threads = facts.processors;
  EXPECT_THAT(wait_advice(facts)[0], AllOf(HasSubstr("more processors"), HasSubstr("GPU")));
}

TEST(WaitAdvice, TheStore) {
  WaitFacts facts = waiting();
  facts.fetch_bound = 0.8;
  facts.remote = true;
  facts.memory_share = 0.95;
  facts.throttled = 12;
  EXPECT_THAT(wait_advice(facts)[0],
              AllOf(HasSubstr("mostly for the store"), HasSubstr("--cache-dir"),
                    HasSubstr("--memory"), HasSubstr("rejected 12 requests")));
  facts.disk_cache = true;
  EXPECT_THAT(wait_advice(facts)[0], Not(HasSubstr("--cache-dir")));
}

TEST(WaitAdvice, FewChunks) {
  WaitFacts facts = waiting();
  facts.decode_few = 0.9;
  facts.decoding = 1.2;
  EXPECT_THAT(wait_advice(facts)[0], HasSubstr("1.2 of 4 threads decoded"));
}

TEST(WaitAdvice, NoOrder) {
  WaitFacts facts = waiting();
  facts.jumping = 1;
  facts.decode_bound = 1;
  EXPECT_THAT(wait_advice(facts)[0], HasSubstr("1 of 1 readers reads batches out of order"));
}

TEST(WaitAdvice, OnlyTheFirst) {
  WaitFacts facts = waiting();
  facts.first_share = 0.99;
  EXPECT_THAT(wait_advice(facts)[0], HasSubstr("for the first batch"));
}

TEST(WaitAdvice, EvictionsErrorsAndPassthrough) {
  WaitFacts facts = waiting();
  facts.evictions = 50;
  facts.chunks = 100;
  facts.decode_amplification = 3;
  facts.errors = 1;
  facts.passthrough = false;
  const std::vector<std::string> advice = wait_advice(facts);
  EXPECT_THAT(advice, testing::Contains(HasSubstr("50 of 100 decoded chunks were dropped")));
  EXPECT_THAT(advice, testing::Contains(HasSubstr("1 read failed")));
  EXPECT_THAT(advice, testing::Contains(HasSubstr("passthrough")));
}

TEST(WaitFacts, SayWhatWasDoneWhileReadersWaited) {
  Timeline line;
  line.seconds = 10;
  Timeline::Reader reader{"train", 0, 1, {}};
  reader.gets.push_back({{0, 4}, 5, 0, 1, 10, false});  // 4 s waited, 1 s used
  reader.gets.push_back({{5, 9}, 10, 0, 2, 10, false});
  line.readers = {reader};
  line.decodes = {{0, 4}, {0, 4}};  // both threads, in the first wait
  line.fetches = {{5, 8}};          // in the second
  const WaitFacts facts = wait_facts(line,
                                     {{"threads", 2},
                                      {"bytes_decoded", 30},
                                      {"bytes_fetched", 20},
                                      {"bytes_delivered", 10},
                                      {"memory_used", 1},
                                      {"memory_budget", 2},
                                      {"passthrough", true},
                                      {"store", {{"throttled", 3}}}},
                                     8);
  EXPECT_EQ(facts.gets, 2);
  EXPECT_NEAR(facts.wait_share, 0.8, 1e-6);
  EXPECT_NEAR(facts.decode_bound, 0.5, 0.01);
  EXPECT_NEAR(facts.fetch_bound, 0.375, 0.01);
  EXPECT_NEAR(facts.idle, 0.125, 0.01);
  EXPECT_NEAR(facts.decoding, 1, 0.01);
  EXPECT_NEAR(facts.first_share, 0, 1e-9);  // the first batch in the trace, not in the epoch
  EXPECT_EQ(facts.decode_amplification, 3);
  EXPECT_EQ(facts.fetch_amplification, 2);
  EXPECT_EQ(facts.memory_share, 0.5);
  EXPECT_TRUE(facts.remote);
  EXPECT_EQ(facts.throttled, 3u);
  EXPECT_EQ(wait_facts({}, nullptr, 8).gets, 0);
}

}  // namespace wait_advice_test
}  // namespace batchfs
