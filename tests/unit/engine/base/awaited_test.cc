#include "engine/base/awaited.h"

#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace batchfs {
namespace awaited_test {

using Outcome = std::variant<std::string, std::exception_ptr>;
using Done = std::function<void(Outcome)>;

TEST(Awaited, TheValueComesFromAnyThread) {
  EXPECT_EQ(awaited<Outcome>([](Done done) { done("at once"); }), "at once");
  std::thread other;
  EXPECT_EQ(awaited<Outcome>([&other](Done done) {
              other = std::thread([done = std::move(done)] { done("later"); });
            }),
            "later");
  other.join();
}

TEST(Awaited, AnErrorIsThrown) {
  EXPECT_THROW(awaited<Outcome>([](Done done) {
                 done(std::make_exception_ptr(std::out_of_range("no such thing")));
               }),
               std::out_of_range);
}

}  // namespace awaited_test
}  // namespace batchfs
