#include "fs/opens.h"

#include <atomic>
#include <cerrno>
#include <future>
#include <new>

#include <gtest/gtest.h>

#include "engine/base/strings.h"
#include "engine/zarr/hierarchy.h"
#include "tests/unit/engine/pipeline/fake_store.h"

namespace batchfs {
namespace opens_test {

using namespace std::chrono_literals;

struct Answered {
  OpenTable::Opening opening;
  int error = 0;
};

class OpensTest : public testing::Test {
 protected:
  ~OpensTest() override { data_.store->open(); }

  std::future<Answered> start(Ino ino, RequestToken* token = nullptr,
                              bool interrupt_first = false) {
    auto promise = std::make_shared<std::promise<Answered>>();
    const RequestToken begun =
        opens_.begin([promise](const OpenTable::Opening* opening, int error) {
          promise->set_value({opening != nullptr ? *opening : OpenTable::Opening{}, error});
        });
    if (token != nullptr) *token = begun;
    if (interrupt_first) opens_.interrupt(begun);
    opens_.start(begun, ino, true);
    return promise->get_future();
  }
  Answered open(Ino ino) {
    auto answer = start(ino);
    EXPECT_EQ(answer.wait_for(20s), std::future_status::ready);
    return answer.get();
  }
  Ino find(const std::string& path) {
    Ino at = kRootIno;
    for (const std::string& name : split(path, '/')) at = served_.lookup(at, name).value().ino;
    return at;
  }

  FakeData data_{8, 4, 6};
  Log log_;
  Engine engine_{{.threads = 2, .memory = 64 << 20, .prefetch = false}, log_};
  KnownInodes known_;
  Generations served_{
      {std::make_shared<FileSystem>(
          FileSystem::Options{.store_url = "fake"}, data_.store,
          std::make_shared<const Hierarchy>(data_.hierarchy), data_.dataset,
          std::vector{data_.view(R"({"name": "v", "window": {"time": 1}, "batch": 4})")}, engine_,
          log_)},
      known_};
  std::atomic<bool> out_of_memory_ = false;
  OpenTable table_{nullptr,
                   {[this](int) {
                      if (out_of_memory_) throw std::bad_alloc();
                      return 5;
                    },
                    [](std::int32_t) {}},
                   log_};
  Opens opens_{served_, table_};
};

TEST_F(OpensTest, GiveHandles) {
  const Answered text = open(find("store.json"));
  EXPECT_EQ(text.error, 0);
  EXPECT_EQ(text.opening.backing_id, 0);
  EXPECT_EQ(table_.find(text.opening.handle), text.opening.file);
  const Ino batch = find("views/v/epoch-0000/batch-000001.npy");
  const Answered first = open(batch), second = open(batch);
  EXPECT_EQ(first.opening.backing_id, 5);
  EXPECT_EQ(second.opening.file, first.opening.file);
  EXPECT_NE(second.opening.handle, first.opening.handle);
}

TEST_F(OpensTest, WhatCannotBeOpened) {
  EXPECT_EQ(open(find("views")).error, ENOENT);
  EXPECT_EQ(open(Ino{1} << 62).error, ESTALE);
  data_.store->failing = 2;
  EXPECT_EQ(open(find("views/v/epoch-0000/batch-000002.npy")).error, EIO);
}

TEST_F(OpensTest, ForWantOfMemoryAnOpenEndsWithAnError) {
  out_of_memory_ = true;
  EXPECT_EQ(open(find("views/v/epoch-0000/batch-000002.npy")).error, ENOMEM);
  out_of_memory_ = false;
  EXPECT_EQ(open(find("views/v/epoch-0000/batch-000002.npy")).opening.backing_id, 5);
}

TEST_F(OpensTest, AnAnswerThatThrowsIsNotGivenAgain) {
  int answers = 0;
  EXPECT_THROW(served_.open(find("store.json"),
                            [&answers](const auto&, const auto&) {
                              ++answers;
                              throw std::bad_alloc();
                            }),
               std::bad_alloc);
  EXPECT_EQ(answers, 1);
}

TEST_F(OpensTest, ABatchIsWaitedFor) {
  data_.store->close();
  auto answer = start(find("views/v/epoch-0000/batch-000003.npy"));
  EXPECT_EQ(answer.wait_for(20ms), std::future_status::timeout);
  EXPECT_EQ(open(find("store.json")).error, 0);
  data_.store->open();
  ASSERT_EQ(answer.wait_for(20s), std::future_status::ready);
  EXPECT_EQ(answer.get().opening.backing_id, 5);
}

TEST_F(OpensTest, ASignalEndsTheWait) {
  data_.store->close();
  for (const std::string name :
       {"views/v/epoch-0000/batch-000003.npy", "arrays/v/chunks/1.0.npy"}) {
    RequestToken token = 0;
    auto answer = start(find(name), &token);
    EXPECT_EQ(answer.wait_for(10ms), std::future_status::timeout);
    opens_.interrupt(token);
    ASSERT_EQ(answer.wait_for(20s), std::future_status::ready);
    EXPECT_EQ(answer.get().error, EINTR);
    opens_.interrupt(token);  // too late
  }
}

TEST_F(OpensTest, ASignalBeforeTheStart) {
  data_.store->close();
  auto answer = start(find("views/v/epoch-0000/batch-000003.npy"), nullptr, true);
  ASSERT_EQ(answer.wait_for(20s), std::future_status::ready);
  EXPECT_EQ(answer.get().error, EINTR);
}

}  // namespace opens_test
}  // namespace batchfs
