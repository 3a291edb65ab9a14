#include "gpu/handoff/state_teller.h"

#include <future>

#include <gtest/gtest.h>

#include "engine/base/error.h"

namespace batchfs::handoff {
namespace state_teller_test {

/// Waits for the text, or throws the error.
std::string answer_of(StateTeller& teller, StateText what) {
  std::promise<std::string> promise;
  teller.ask(what, [&](std::shared_ptr<const MemoryFile> text, std::exception_ptr error) {
    if (error) return promise.set_exception(error);
    promise.set_value(std::string(reinterpret_cast<const char*>(text->data()), text->size()));
  });
  return promise.get_future().get();
}

TEST(StateTeller, AnswersInItsOwnThread) {
  std::thread::id thread;
  StateTeller teller([&](StateText what) {
    thread = std::this_thread::get_id();
    return what == StateText::log ? "a line\n" : "{}";
  });
  EXPECT_EQ(answer_of(teller, StateText::log), "a line\n");
  EXPECT_EQ(answer_of(teller, StateText::status), "{}");
  EXPECT_NE(thread, std::this_thread::get_id());
}

TEST(StateTeller, ErrorsReachWhoAsked) {
  StateTeller teller([](StateText what) -> std::string {
    if (what == StateText::trace) return std::string(kMaxStateText + 1, ' ');
    throw Error(ErrorCode::not_supported, "no such text");
  });
  EXPECT_THROW(answer_of(teller, StateText::status), Error);
  EXPECT_THROW(answer_of(teller, StateText::trace), Error);
}

TEST(StateTeller, TooManyQuestionsAreRefused) {
  std::promise<void> go;
  auto may_go = go.get_future().share();
  int answers = 0;
  {
    StateTeller teller([may_go](StateText) {
      may_go.wait();
      return "";
    });
    const auto count = [&answers](const auto&, const auto&) { ++answers; };
    const auto ask_all = [&] {
      for (int i = 0; i < 1000; ++i) teller.ask(StateText::status, count);
    };
    EXPECT_THROW(ask_all(), Error);
    go.set_value();
  }
  EXPECT_GE(answers, 0);  // those that were not answered are dropped
}

}  // namespace state_teller_test
}  // namespace batchfs::handoff
