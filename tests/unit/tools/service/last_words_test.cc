#include "tools/service/last_words.h"

#include <new>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "engine/base/error.h"

namespace batchfs {
namespace last_words_test {

class Destroyed {
 public:
  ~Destroyed() { throw_bad_alloc(); }

 private:
  static void throw_bad_alloc() { throw std::bad_alloc(); }
};

void speak() {
  end_with_last_words(3);
  set_last_words(STDERR_FILENO, "out of memory\n");
}

TEST(LastWords, OfAThread) {
  EXPECT_EXIT(
      {
        speak();
        std::thread([] { throw std::bad_alloc(); }).join();
      },
      testing::ExitedWithCode(3), "^out of memory\n$");
}

TEST(LastWords, OfADestructor) {
  EXPECT_EXIT(
      {
        speak();
        const Destroyed destroyed;
      },
      testing::ExitedWithCode(3), "^out of memory\n$");
}

TEST(LastWords, OfAnErrorThatSaysSo) {
  EXPECT_EXIT(
      {
        speak();
        std::thread([] { throw Error(ErrorCode::no_memory, "no memory for the decoder"); }).join();
      },
      testing::ExitedWithCode(3), "^out of memory\n$");
}

TEST(LastWords, AreReplacedAndRemoved) {
  EXPECT_EXIT(
      {
        speak();
        set_last_words(STDERR_FILENO, "others\n");
        set_last_words(STDOUT_FILENO, "never\n");
        set_last_words(STDOUT_FILENO, "");
        std::thread([] { throw std::bad_alloc(); }).join();
      },
      testing::ExitedWithCode(3), "^others\n$");
}

TEST(LastWords, NobodyReadsThem) {
  EXPECT_EXIT(
      {
        speak();
        int ends[2];
        if (::pipe(ends) != 0) ::_exit(9);
        ::close(ends[0]);
        set_last_words(ends[1], "never");
        std::thread([] { throw std::bad_alloc(); }).join();
      },
      testing::ExitedWithCode(3), "^out of memory\n$");
}

TEST(LastWords, OtherExceptionsAbort) {
  EXPECT_EXIT(
      {
        speak();
        std::thread([] { throw std::logic_error("a mistake"); }).join();
      },
      testing::KilledBySignal(SIGABRT), "a mistake");
}

}  // namespace last_words_test
}  // namespace batchfs
