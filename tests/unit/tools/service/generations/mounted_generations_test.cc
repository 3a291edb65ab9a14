#include "tools/service/generations/mounted_generations.h"

#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "engine/base/json.h"
#include "fs/file_system.h"
#include "fs/session_state.h"
#include "tests/unit/eventually.h"
#include "tests/unit/tools/service/generations/growing_store.h"
#include "tools/service/generations/first_generation.h"

namespace batchfs {
namespace mounted_generations_test {

class MountedGenerationsTest : public testing::Test {
 protected:
  MountedGenerationsTest() {
    auto first = first_generation(options(), engine_, log_);
    make_files(*first);
    first->begin(fd_);
    generations_.emplace(std::move(first), *inodes_, engine_);
  }
  ~MountedGenerationsTest() override { ::close(fd_); }

  GenerationOptions options() const {
    GenerationOptions options = store_.options();
    options.session = fd_;
    return options;
  }
  void make_files(Generation& generation) {
    generation.files = std::make_unique<FileSystem>(
        FileSystem::Options{.store_url = "s"}, generation.opened.store, generation.opened.hierarchy,
        generation.dataset, generation.views, engine_, log_);
  }
  MountedGenerations::Environment environment() {
    return {
        .options = options(),
        .engine = engine_,
        .handoff = nullptr,
        .log = log_,
        .make_files = [this](Generation& next) { make_files(next); },
        .names = {.forget = [this](Ino, const std::string& name) { forgotten_.push_back(name); },
                  .expire = [](Ino, const std::string&) {}}};
  }
  Files& files() { return generations_->files(); }

  GrowingStore store_;
  Log log_;
  Engine engine_{{.threads = 2, .memory = 64 << 20}, log_};
  const int fd_ = SessionState::create();
  SessionState state_{fd_};
  std::vector<std::string> forgotten_;
  const std::unique_ptr<KnownInodes> inodes_ = SessionState::inodes(fd_);
  std::optional<MountedGenerations> generations_;
};

TEST_F(MountedGenerationsTest, TheSessionsStateNamesTheNewest) {
  const SessionState::Reading before = state_.reading();
  EXPECT_EQ(parse_json(generations_->refresh(environment()), "").at("changed"), false);
  EXPECT_EQ(state_.reading().number, before.number);
  store_.grow_to(6);
  EXPECT_EQ(parse_json(generations_->refresh(environment()), "").at("changed"), true);
  EXPECT_NE(state_.reading().identity, before.identity);
  EXPECT_NE(state_.reading().version_slot, before.version_slot);
  EXPECT_EQ(state_.reading().number,
            inodes_->find(files().lookup(kRootIno, "views").value().ino)->reading);
}

TEST_F(MountedGenerationsTest, TheKernelIsToldAndTheOlderOneGoes) {
  const Ino views = files().lookup(kRootIno, "views").value().ino;
  store_.grow_to(6);
  generations_->refresh(environment());
  EXPECT_NE(std::find(forgotten_.begin(), forgotten_.end(), "views"), forgotten_.end());
  EXPECT_TRUE(generations_->sweep(environment()));
  files().forget(views, 1);
  EXPECT_TRUE(eventually([this] { return !generations_->sweep(environment()); }));
  EXPECT_THROW(files().attributes(views), Error);
}

TEST_F(MountedGenerationsTest, ARefreshMakesRoomOnceTheKernelForgets) {
  const MountedGenerations::Environment with = environment();
  std::vector<Ino> looked_up;
  for (std::size_t turn = 1; turn < Generations::kMaxGenerations; ++turn) {
    looked_up.push_back(files().lookup(kRootIno, "views").value().ino);
    store_.grow_to(static_cast<int>(4 + turn));
    generations_->refresh(with);
  }
  EXPECT_EQ(generations_->files().size(), Generations::kMaxGenerations);
  store_.grow_to(40);
  EXPECT_THROW(generations_->refresh(with), Error);
  // The kernel forgets in another thread, before the refresh or while it waits.
  std::thread kernel([&] {
    for (const Ino ino : looked_up) files().forget(ino, 1);
  });
  EXPECT_NO_THROW(generations_->refresh(with));
  kernel.join();
  EXPECT_FALSE(generations_->sweep(with));
  EXPECT_EQ(generations_->files().size(), 1u);
}

TEST_F(MountedGenerationsTest, AFailureChangesNothing) {
  const std::uint32_t before = state_.reading().number;
  store_.remove_array();
  EXPECT_THROW(generations_->refresh(environment()), Error);
  EXPECT_EQ(state_.reading().number, before);
  EXPECT_EQ(generations_->files().size(), 1u);
}

}  // namespace mounted_generations_test
}  // namespace batchfs
