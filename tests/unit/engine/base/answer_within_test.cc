#include "engine/base/answer_within.h"

#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

namespace batchfs {
namespace answer_within_test {

using namespace std::chrono_literals;

TEST(AnswerWithin, GivesWhatTheCallGivesOrThrows) {
  EXPECT_EQ(answer_within(10s, [] { return std::string("here"); }), "here");
  EXPECT_THROW(answer_within(10s, []() -> int { throw std::runtime_error("no"); }),
               std::runtime_error);
}

TEST(AnswerWithin, LeavesACallThatTakesLonger) {
  const auto end = std::make_shared<std::promise<void>>();
  const auto ended = std::make_shared<std::promise<void>>();
  EXPECT_EQ(answer_within(20ms,
                          [end, ended] {
                            end->get_future().wait();
                            ended->set_value();
                            return 1;
                          }),
            std::nullopt);
  end->set_value();
  EXPECT_EQ(ended->get_future().wait_for(10s), std::future_status::ready);
}

}  // namespace answer_within_test
}  // namespace batchfs
