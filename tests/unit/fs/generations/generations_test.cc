#include "fs/generations/generations.h"

#include <set>

#include <gtest/gtest.h>

#include "engine/base/error.h"

namespace batchfs {
namespace generations_test {

constexpr FileNumber kControl = 2, kInner = 19, kFolder = 20, kFile = 21, kLink = 22;

/// A file system of the folder "d" and its file "f", whose size says which one it is.
class FakeFiles : public StateFiles {
 public:
  explicit FakeFiles(std::uint64_t size) : size_(size) {}

  std::optional<Found> lookup(FileNumber parent, std::string_view name) const override {
    if (parent == kRootIno && name == ".batchfs") return attributes(2);
    if (parent == kRootIno && name == "d") return attributes(kFolder);
    if (parent == kFolder && name == "f") return attributes(kFile);
    if (parent == kFolder && name == "e") return attributes(kInner);
    if (parent == kControl && name == "link") return attributes(kLink);
    return std::nullopt;
  }
  std::optional<Found> attributes(FileNumber number) const override {
    return Found{{.directory = is_directory(number), .size = size_}, number};
  }
  bool is_directory(FileNumber number) const override { return number < kFile; }
  void list(FileNumber directory, std::uint64_t offset, const Visit& visit) const override {
    if (offset > 0) return;
    if (directory == kRootIno) visit("d", kFolder, true, 1);
    if (directory == kFolder) visit("f", kFile, false, 1);
  }
  std::optional<FileNumber> parent(FileNumber number) const override {
    if (number == kInner) return kFolder;
    return number == kFile ? kFolder : number == kLink ? kControl : FileNumber{kRootIno};
  }
  std::string path(FileNumber number) const override {
    if (number == kInner) return "d/e";
    return number == kFile ? "d/f" : number == kLink ? ".batchfs/link" : "d";
  }
  std::optional<std::string> link_target(FileNumber) const override { return std::nullopt; }
  WaiterId open(FileNumber, Files::OpenDone done) override {
    waiting = std::move(done);
    return 7;
  }
  void cancel(WaiterId) override {}
  const MemoryFiles& memory_files() const override { throw Error(ErrorCode::internal, "none"); }
  void set_passthrough(bool on) override { passthrough = on; }
  std::uint64_t total_bytes() const override { return size_; }

  Files::OpenDone waiting;
  bool passthrough = false;

 private:
  const std::uint64_t size_;
};

class GenerationsTest : public testing::Test {
 protected:
  void grow() {
    generations_.check_room();
    ++last_;
    generations_.add({std::make_shared<FakeFiles>(last_), last_, last_ * 1000});
  }
  Ino look_up(Ino parent, const char* name) {
    return generations_.lookup(parent, name).value().ino;
  }
  std::vector<std::pair<Ino, std::string>> outdated() { return names_of(generations_).first; }
  using Names = std::vector<std::pair<Ino, std::string>>;
  /// The names to forget, and the names to look up again.
  static std::pair<Names, Names> names_of(Generations& generations) {
    std::pair<Names, Names> names;
    generations.give_up_names(
        {.forget = [&](Ino at, const std::string& name) { names.first.emplace_back(at, name); },
         .expire = [&](Ino at, const std::string& name) { names.second.emplace_back(at, name); }});
    return names;
  }

  std::uint32_t last_ = 1;
  std::shared_ptr<FakeFiles> first_ = std::make_shared<FakeFiles>(1);
  std::weak_ptr<StateFiles> watched_ = first_;
  KnownInodes known_;
  int crowded_ = 0;
  Generations generations_{
      {std::exchange(first_, nullptr), 1, 1000}, known_, 4, [this] { ++crowded_; }};
};

TEST_F(GenerationsTest, LookupsFromTheRootSeeTheNewest) {
  const Ino before = look_up(look_up(kRootIno, "d"), "f");
  grow();
  const Ino after = look_up(look_up(kRootIno, "d"), "f");
  EXPECT_NE(before, after);
  EXPECT_EQ(generations_.attributes(before).value().size, 1u);
  EXPECT_EQ(generations_.attributes(after).value().size, 2u);
  EXPECT_EQ(generations_.attributes(after).value().ino, after);
  EXPECT_EQ(generations_.attributes(before).value().time, 1000);
  EXPECT_EQ(generations_.lookup(kRootIno, "d").value().time, 2000);
  EXPECT_EQ(generations_.attributes(after).value().time, 2000);
  EXPECT_EQ(generations_.attributes(before).value().shown, 21u);
  EXPECT_NE(generations_.attributes(after).value().shown, 21u);
  EXPECT_EQ(generations_.parent_shown(after),
            generations_.attributes(look_up(kRootIno, "d")).value().shown);
  EXPECT_EQ(generations_.path(after), "d/f");
  EXPECT_EQ(generations_.total_bytes(), 2u);
}

TEST_F(GenerationsTest, AnOlderDirectoryStaysWithItsGeneration) {
  const Ino folder = look_up(kRootIno, "d");
  EXPECT_FALSE(generations_.lookup(folder, "f").value().outdated);
  grow();
  const auto found = generations_.lookup(folder, "f").value();
  EXPECT_EQ(found.size, 1u);
  EXPECT_TRUE(found.outdated);
  std::vector<std::uint64_t> listed;
  generations_.list(folder, 0, [&](const Files::Entry& entry) {
    listed.push_back(entry.shown);
    return true;
  });
  EXPECT_EQ(listed, std::vector{found.shown});
}

TEST_F(GenerationsTest, ControlFilesHaveOneNumber) {
  const Ino before = look_up(kRootIno, ".batchfs");
  grow();
  EXPECT_EQ(look_up(kRootIno, ".batchfs"), before);
  EXPECT_EQ(generations_.attributes(before).value().size, 2u);
  EXPECT_EQ(generations_.attributes(before).value().time, 0);
  EXPECT_EQ(generations_.attributes(before).value().shown, before);
}

TEST_F(GenerationsTest, OneThatNobodyUsesIsDropped) {
  grow();
  EXPECT_EQ(generations_.size(), 2u);
  EXPECT_EQ(generations_.drop_unused(), 0u);
  EXPECT_TRUE(watched_.expired());
  EXPECT_EQ(generations_.size(), 1u);
}

TEST_F(GenerationsTest, TheKernelsReferencesKeepIt) {
  const Ino folder = look_up(kRootIno, "d");
  look_up(kRootIno, "d");
  grow();
  EXPECT_EQ(generations_.drop_unused(), 1u);
  generations_.forget(folder, 1);
  EXPECT_EQ(generations_.drop_unused(), 1u);
  generations_.forget(folder, 1);
  EXPECT_EQ(generations_.drop_unused(), 0u);
  EXPECT_TRUE(watched_.expired());
  generations_.forget(folder, 1);  // of none that there is
  try {
    generations_.attributes(folder);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::stale);
  }
  EXPECT_EQ(generations_.parent_shown(folder), std::nullopt);
  EXPECT_EQ(generations_.path(folder), "");
  std::exception_ptr failed;
  EXPECT_EQ(generations_.open(folder, [&](auto, std::exception_ptr error) { failed = error; }), 0u);
  EXPECT_EQ(error_of(failed).code(), ErrorCode::stale);
}

TEST_F(GenerationsTest, AnOpenThatWaitsKeepsIt) {
  const Ino folder = look_up(kRootIno, "d"), file = look_up(folder, "f");
  auto* files = static_cast<FakeFiles*>(watched_.lock().get());
  EXPECT_EQ(generations_.open(file, [](auto, auto) {}), 7u);
  grow();
  generations_.forget(file, 1);
  generations_.forget(folder, 1);
  EXPECT_EQ(generations_.drop_unused(), 1u);
  std::exchange(files->waiting, nullptr)(nullptr, nullptr);
  EXPECT_EQ(generations_.drop_unused(), 0u);
}

TEST_F(GenerationsTest, NamesOfOlderOnesAreOutdatedUntilForgotten) {
  const Ino folder = look_up(kRootIno, "d"), file = look_up(folder, "f");
  EXPECT_EQ(outdated(), Names());
  EXPECT_FALSE(generations_.lookup(folder, "absent"));  // the newest: the root's name is enough
  grow();
  EXPECT_FALSE(generations_.lookup(folder, "later"));
  EXPECT_EQ(outdated(), (Names{{kRootIno, "d"}, {folder, "later"}, {folder, "f"}}));
  EXPECT_EQ(outdated(), (Names{{kRootIno, "d"}, {folder, "f"}}));
  generations_.forget(file, 1);
  EXPECT_EQ(outdated(), (Names{{kRootIno, "d"}}));
  EXPECT_EQ(outdated(), Names());  // the root's are of the newest by now
  grow();
  EXPECT_EQ(outdated(), (Names{{kRootIno, "d"}}));
}

TEST_F(GenerationsTest, AnOlderNameInACommonFolderIsGivenUp) {
  const Ino control = look_up(kRootIno, ".batchfs");
  look_up(control, "link");
  grow();
  EXPECT_EQ(outdated(), (Names{{control, "link"}}));
}

TEST_F(GenerationsTest, TheNextDaemonKnowsTheNewestAlone) {
  const Ino older = look_up(kRootIno, "d");
  grow();
  const Ino newest = look_up(kRootIno, "d");
  Generations next({std::make_shared<FakeFiles>(2), 2, 2000}, known_);
  EXPECT_EQ(next.attributes(newest).value().size, 2u);
  EXPECT_EQ(next.lookup(kRootIno, "d").value().ino, newest);
  EXPECT_THROW(next.attributes(older), Error);
  // Whether the daemon before had the kernel give up the root's names is not known.
  // The name stays with those that use it.
  EXPECT_EQ(names_of(next), std::pair(Names(), Names{{kRootIno, "d"}}));
  // It goes as any other.
  next.add({std::make_shared<FakeFiles>(3), 3, 3000});
  EXPECT_EQ(next.drop_unused(), 1u);
  next.forget(newest, 2);
  EXPECT_EQ(next.drop_unused(), 0u);
}

TEST_F(GenerationsTest, ThereAreOnlySoMany) {
  const Ino first = look_up(kRootIno, "d");
  for (std::size_t i = 1; i < Generations::kMaxGenerations; ++i) {
    look_up(kRootIno, "d");
    grow();
  }
  EXPECT_EQ(generations_.size(), Generations::kMaxGenerations);
  EXPECT_THROW(generations_.check_room(), Error);
  generations_.forget(first, 2);
  generations_.drop_unused();
  EXPECT_NO_THROW(generations_.check_room());
}

TEST_F(GenerationsTest, ANumberIsNeverGivenAgain) {
  std::set<Ino> seen;
  const Ino held = look_up(kRootIno, "d");
  seen.insert(held);
  for (int i = 0; i < 100; ++i) {
    grow();
    generations_.drop_unused();
    const Ino folder = look_up(kRootIno, "d");
    EXPECT_TRUE(seen.insert(folder).second);
    generations_.forget(folder, 1);
    EXPECT_EQ(generations_.attributes(held).value().size, 1u);
    EXPECT_THROW(generations_.attributes(folder), Error);
  }
}

TEST_F(GenerationsTest, FilesBeyondALimitAreGivenUp) {
  const Ino folder = look_up(kRootIno, "d");
  std::vector<Ino> others;
  for (FileNumber number = 100; number < 104; ++number) others.push_back(known_.refer({1, number}));
  EXPECT_EQ(crowded_, 0);
  const Ino file = look_up(folder, "f");
  EXPECT_EQ(crowded_, 1);
  EXPECT_EQ(outdated(), (Names{{folder, "f"}}));  // the others are in the root
  EXPECT_EQ(generations_.kernel_names(), 6u);
  generations_.forget(file, 1);
  for (const Ino other : others) generations_.forget(other, 1);
  EXPECT_EQ(outdated(), Names());
}

TEST_F(GenerationsTest, DirectoriesAreGivenUpWhereThereAreTwiceAsManyNames) {
  const Ino folder = look_up(kRootIno, "d");
  look_up(folder, "e");
  const std::size_t limit = 4;
  FileNumber others = 100;
  while (generations_.kernel_names() < 2 * limit + 1) known_.refer({1, others++});
  EXPECT_EQ(outdated(), Names());
  known_.refer({1, others});
  EXPECT_EQ(outdated(), (Names{{folder, "e"}}));
}

TEST_F(GenerationsTest, PassthroughIsOfTheMount) {
  generations_.set_passthrough(true);
  const auto next = std::make_shared<FakeFiles>(5);
  generations_.add({next, 2});
  EXPECT_TRUE(next->passthrough);
}

}  // namespace generations_test
}  // namespace batchfs
