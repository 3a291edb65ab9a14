#include "tools/service/refresher.h"

#include <atomic>
#include <future>

#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "tests/unit/eventually.h"

namespace batchfs {
namespace refresher_test {

class RefresherTest : public testing::Test {
 protected:
  std::string ask() {
    std::promise<std::string> answer;
    refresher_.ask(false, [&](std::string changes, std::exception_ptr error) {
      if (error)
        answer.set_exception(error);
      else
        answer.set_value(std::move(changes));
    });
    return answer.get_future().get();
  }
  void begin(double every = 0) {
    refresher_.begin({.refresh = [this](bool) -> std::string {
                        ++refreshes_;
                        if (fails_) throw Error(ErrorCode::io, "no store");
                        return "changes";
                      },
                      .sweep = [this] { return ++sweeps_ < 2; },
                      .every = std::chrono::duration<double>(every)});
  }

  Log log_;
  std::atomic<int> refreshes_ = 0, sweeps_ = 0;
  std::atomic<bool> fails_ = false;
  Refresher refresher_{log_};
};

TEST_F(RefresherTest, AnswersWithWhatHasChanged) {
  EXPECT_THROW(ask(), Error);  // not begun
  begin();
  EXPECT_EQ(ask(), "changes");
  EXPECT_TRUE(eventually([this] { return sweeps_ == 2; }));
  EXPECT_TRUE(refresher_.stop(10));
  EXPECT_EQ(refreshes_, 1);
  EXPECT_THROW(ask(), Error);  // stopped
}

TEST_F(RefresherTest, AFailureIsAnsweredAndLogged) {
  fails_ = true;
  begin();
  EXPECT_THROW(ask(), Error);
  EXPECT_NE(log_.text().find("could not be read again"), std::string::npos);
  fails_ = false;
  EXPECT_EQ(ask(), "changes");
  EXPECT_TRUE(refresher_.stop(10));
}

TEST_F(RefresherTest, ReadsAtIntervals) {
  begin(0.01);
  EXPECT_TRUE(eventually([this] { return refreshes_ >= 3; }));
  EXPECT_TRUE(refresher_.stop(10));
}

TEST(Refresher, StoppingIsBounded) {
  Log log;
  std::promise<void> leave;
  const auto left = leave.get_future().share();
  const auto begun = std::make_shared<std::promise<void>>();
  std::atomic<bool> was_answered = false;
  Refresher refresher(log);
  refresher.begin({.refresh =
                       [left, begun](bool) {
                         begun->set_value();
                         left.wait();
                         return std::string();
                       },
                   .sweep = [] { return false; }});
  const auto ended = std::make_shared<std::promise<void>>();
  refresher.ask(false, [ended](auto, auto) { ended->set_value(); });
  begun->get_future().wait();
  refresher.ask(false, [&](std::string, std::exception_ptr error) {
    was_answered = error_of(error).code() == ErrorCode::interrupted;
  });
  EXPECT_FALSE(refresher.stop(0.05));
  EXPECT_TRUE(was_answered);
  leave.set_value();
  ended->get_future().wait();
}

TEST(Refresher, NeedNotBegin) {
  Log log;
  Refresher refresher(log);
  EXPECT_TRUE(refresher.stop(1));
}

}  // namespace refresher_test
}  // namespace batchfs
