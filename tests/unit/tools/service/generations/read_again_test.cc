#include "tools/service/generations/read_again.h"

#include <gtest/gtest.h>

#include "engine/base/json.h"
#include "tests/unit/tools/service/generations/growing_store.h"

namespace batchfs {
namespace read_again_test {

class ReadAgainTest : public testing::Test {
 protected:
  ReadAgainTest() { first_->resolve(store_.options(), engine_, log_); }
  std::shared_ptr<Generation> again() {
    return read_again(*first_, store_.options(), engine_, log_, [this](Generation&) {
      ++checks_;
      if (checks_ <= refused_) throw Error(ErrorCode::corrupt, "half of it");
    });
  }

  GrowingStore store_;
  Log log_;
  Engine engine_{{.threads = 2, .memory = 64 << 20}, log_};
  std::shared_ptr<Generation> first_ = read_generation(store_.options(), log_);
  int checks_ = 0, refused_ = 0;
};

TEST_F(ReadAgainTest, NothingHasChanged) {
  EXPECT_EQ(again(), nullptr);
  EXPECT_EQ(checks_, 0);
  const Json changes = parse_json(describe_changes(*first_, nullptr), "");
  EXPECT_EQ(changes.at("changed"), false);
  EXPECT_EQ(changes.at("snapshot"), first_->reading());
  EXPECT_FALSE(changes.contains("fixed"));
  EXPECT_EQ(parse_json(describe_changes(*first_, nullptr, "tag v1"), "").at("fixed"), "tag v1");
}

TEST_F(ReadAgainTest, TheStoreHasGrown) {
  store_.grow_to(10);
  const auto next = again();
  ASSERT_NE(next, nullptr);
  const Json changes = parse_json(describe_changes(*first_, next.get()), "");
  EXPECT_EQ(changes.at("changed"), true);
  EXPECT_EQ(changes.at("snapshot"), next->reading());
  EXPECT_EQ(changes.at("views"), (Json::array({{{"name", "v"},
                                                {"samples", 10},
                                                {"batches", 5},
                                                {"samples_before", 4},
                                                {"batches_before", 2}}})));
}

TEST_F(ReadAgainTest, WhatDoesNotFitIsTriedTwice) {
  store_.grow_to(6);
  refused_ = 1;
  EXPECT_NE(again(), nullptr);
  EXPECT_EQ(checks_, 2);
  refused_ = 9;
  EXPECT_THROW(again(), Error);
  EXPECT_EQ(checks_, 4);
  store_.remove_array();
  EXPECT_THROW(again(), Error);
}

TEST_F(ReadAgainTest, StoresLeaveWithTheirGenerations) {
  LeavingStores leaving(engine_);
  leaving.add(first_);
  leaving.sweep();
  EXPECT_EQ(leaving.count(), 1u);
  auto held = first_->opened.store;  // like a chunk that is being decoded
  first_ = nullptr;
  leaving.sweep();
  EXPECT_EQ(leaving.count(), 1u);
  held = nullptr;
  leaving.sweep();
  EXPECT_EQ(leaving.count(), 0u);
}

}  // namespace read_again_test
}  // namespace batchfs
