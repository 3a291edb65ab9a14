#include "engine/base/per_thread.h"

#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

namespace batchfs {
namespace per_thread_test {

struct Counted {
  static inline int alive = 0;
  static inline bool fails = false;
  int value = 0;
  Counted() {
    if (fails) throw std::runtime_error("refused");
    ++alive;
  }
  ~Counted() { --alive; }
};

TEST(PerThread, EachThreadHasItsOwnUntilItEnds) {
  static PerThread<Counted> objects;
  const int before = Counted::alive;
  objects.get().value = 1;
  std::thread([before] {
    EXPECT_EQ(objects.get().value, 0);
    objects.get().value = 2;
    EXPECT_EQ(objects.get().value, 2);
    EXPECT_EQ(Counted::alive, before + 2);
  }).join();
  EXPECT_EQ(Counted::alive, before + 1);
  EXPECT_EQ(objects.get().value, 1);
}

TEST(PerThread, AConstructorThatThrewIsTriedAgain) {
  static PerThread<Counted> objects;
  Counted::fails = true;
  EXPECT_THROW(objects.get(), std::runtime_error);
  Counted::fails = false;
  EXPECT_EQ(objects.get().value, 0);
}

}  // namespace per_thread_test
}  // namespace batchfs
