#include "fs/generations/generations.h"

#include <gtest/gtest.h>

#include "engine/base/error.h"

namespace batchfs {
namespace generations_test {

constexpr Ino kFolder = 20, kFile = 21;

/// A file system of the folder "d" and its file "f", whose size says which one it is.
class FakeFiles : public Files {
 public:
  explicit FakeFiles(std::uint64_t size) : size_(size) {}

  std::optional<Attributes> lookup(Ino parent, std::string_view name) override {
    if (parent == kRootIno && name == ".batchfs") return attributes(2);
    if (parent == kRootIno && name == "d") return attributes(kFolder);
    if (parent == kFolder && name == "f") return attributes(kFile);
    return std::nullopt;
  }
  std::optional<Attributes> attributes(Ino ino) const override {
    Attributes result;
    result.ino = ino;
    result.size = size_;
    return result;
  }
  void list(Ino directory, std::uint64_t offset, const Visit& visit) const override {
    if (offset > 0) return;
    if (directory == kRootIno) visit("d", kFolder, true, 1);
    if (directory == kFolder) visit("f", kFile, false, 1);
  }
  std::optional<Ino> parent(Ino ino) const override { return ino == kFile ? kFolder : kRootIno; }
  std::string path(Ino ino) const override { return ino == kFile ? "d/f" : "d"; }
  std::optional<std::string> link_target(Ino) const override { return std::nullopt; }
  WaiterId open(Ino, OpenDone done) override {
    waiting = std::move(done);
    return 7;
  }
  void cancel(WaiterId) override {}
  const MemoryFiles& memory_files() const override { throw Error(ErrorCode::internal, "none"); }
  void set_passthrough(bool on) override { passthrough = on; }
  std::uint64_t total_bytes() const override { return size_; }

  OpenDone waiting;
  bool passthrough = false;

 private:
  const std::uint64_t size_;
};

class GenerationsTest : public testing::Test {
 protected:
  void grow() {
    const unsigned tag = generations_.free_tag();
    generations_.add(std::make_shared<FakeFiles>(++last_), tag);
  }
  Ino look_up(Ino parent, const char* name) {
    return generations_.lookup(parent, name).value().ino;
  }
  std::vector<std::string> outdated() {
    std::vector<std::string> names;
    for (const Generations::Name& each : generations_.take_outdated_names())
      names.push_back(std::to_string(untagged(each.parent)) + "/" + each.name);
    return names;
  }

  std::uint64_t last_ = 1;
  std::shared_ptr<FakeFiles> first_ = std::make_shared<FakeFiles>(1);
  std::weak_ptr<Files> watched_ = first_;
  Generations generations_{std::exchange(first_, nullptr), 3, false};
};

TEST_F(GenerationsTest, LookupsFromTheRootSeeTheNewest) {
  const Ino before = look_up(look_up(kRootIno, "d"), "f");
  EXPECT_EQ(tag_of(before), 3u);
  grow();
  const Ino after = look_up(look_up(kRootIno, "d"), "f");
  EXPECT_NE(before, after);
  EXPECT_EQ(generations_.attributes(before).value().size, 1u);
  EXPECT_EQ(generations_.attributes(after).value().size, 2u);
  EXPECT_EQ(generations_.attributes(after).value().ino, after);
  EXPECT_EQ(tag_of(generations_.parent(after).value()), tag_of(after));
  EXPECT_EQ(generations_.parent(generations_.parent(after).value()), kRootIno);
  EXPECT_EQ(generations_.total_bytes(), 2u);
}

TEST_F(GenerationsTest, AnOlderDirectoryStaysWithItsGeneration) {
  const Ino folder = look_up(kRootIno, "d");
  EXPECT_FALSE(generations_.lookup(folder, "f").value().outdated);
  grow();
  const auto found = generations_.lookup(folder, "f").value();
  EXPECT_EQ(found.size, 1u);
  EXPECT_TRUE(found.outdated);
  std::vector<Ino> listed;
  generations_.list(folder, 0, [&](const std::string&, Ino ino, bool, std::uint64_t) {
    listed.push_back(ino);
    return true;
  });
  EXPECT_EQ(listed, std::vector{found.ino});
}

TEST_F(GenerationsTest, ControlFilesHaveOneNumber) {
  const Ino before = look_up(kRootIno, ".batchfs");
  grow();
  EXPECT_EQ(look_up(kRootIno, ".batchfs"), before);
  EXPECT_EQ(generations_.attributes(before).value().size, 2u);
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
  EXPECT_EQ(generations_.parent(folder), std::nullopt);
  EXPECT_EQ(generations_.path(folder), "");
  std::exception_ptr failed;
  EXPECT_EQ(generations_.open(folder, [&](auto, std::exception_ptr error) { failed = error; }), 0u);
  EXPECT_EQ(error_of(failed).code(), ErrorCode::stale);
}

TEST_F(GenerationsTest, AnOpenThatWaitsKeepsIt) {
  const Ino file = look_up(look_up(kRootIno, "d"), "f");
  auto* files = static_cast<FakeFiles*>(watched_.lock().get());
  EXPECT_EQ(generations_.open(file, [](auto, auto) {}), 7u);
  grow();
  generations_.forget(file, 1);
  generations_.forget(generations_.parent(file).value(), 1);
  EXPECT_EQ(generations_.drop_unused(), 1u);
  std::exchange(files->waiting, nullptr)(nullptr, nullptr);
  EXPECT_EQ(generations_.drop_unused(), 0u);
}

TEST_F(GenerationsTest, NamesOfOlderOnesAreOutdatedUntilForgotten) {
  const Ino folder = look_up(kRootIno, "d"), file = look_up(folder, "f");
  EXPECT_EQ(outdated(), std::vector<std::string>());
  EXPECT_FALSE(generations_.lookup(folder, "absent"));  // the newest: the root's name is enough
  grow();
  EXPECT_FALSE(generations_.lookup(folder, "later"));
  EXPECT_EQ(outdated(), (std::vector<std::string>{"1/d", "20/f", "20/later"}));
  EXPECT_EQ(outdated(), (std::vector<std::string>{"1/d", "20/f"}));
  generations_.forget(file, 1);
  EXPECT_EQ(outdated(), std::vector<std::string>{"1/d"});
  EXPECT_EQ(outdated(), std::vector<std::string>());  // the root's are of the newest by now
  grow();
  EXPECT_EQ(outdated(), std::vector<std::string>{"1/d"});
}

TEST_F(GenerationsTest, OneOfAnEarlierDaemonStays) {
  const auto files = std::make_shared<FakeFiles>(9);
  Generations generations(files, 5, true);
  generations.add(std::make_shared<FakeFiles>(10), generations.free_tag());
  EXPECT_EQ(generations.drop_unused(), 1u);
  EXPECT_EQ(generations.attributes(tagged(kFile, 5)).value().size, 9u);
}

TEST_F(GenerationsTest, ThereAreOnlySoMany) {
  for (std::size_t i = 1; i < Generations::kMaxGenerations; ++i) {
    look_up(kRootIno, "d");
    grow();
  }
  EXPECT_EQ(generations_.size(), Generations::kMaxGenerations);
  EXPECT_THROW(generations_.free_tag(), Error);
  generations_.forget(tagged(kFolder, 3), 1);
  generations_.drop_unused();
  EXPECT_NO_THROW(generations_.free_tag());
}

TEST_F(GenerationsTest, TagsGoRoundAndAreNeverSharedByTwo) {
  const Ino held = look_up(kRootIno, "d");
  for (unsigned i = 0; i < 3 * kTags; ++i) {
    grow();
    generations_.drop_unused();
    EXPECT_NE(tag_of(look_up(kRootIno, "d")), tag_of(held));
    generations_.forget(look_up(kRootIno, "d"), 2);
    EXPECT_EQ(generations_.attributes(held).value().size, 1u);
  }
}

TEST_F(GenerationsTest, PassthroughIsOfTheMount) {
  generations_.set_passthrough(true);
  const auto next = std::make_shared<FakeFiles>(5);
  generations_.add(next, generations_.free_tag());
  EXPECT_TRUE(next->passthrough);
}

}  // namespace generations_test
}  // namespace batchfs
