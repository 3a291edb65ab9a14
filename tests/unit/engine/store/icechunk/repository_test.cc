#include "engine/store/icechunk/repository.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/store/icechunk/icechunk_files.h"
#include "tests/unit/engine/store/memory_store.h"

namespace batchfs {
namespace repository_test {

using icechunk::base32;
using icechunk::Repository;
using testing::HasSubstr;

std::shared_ptr<MemoryStore> version_2(Fields more = {}) {
  const auto store = std::make_shared<MemoryStore>();
  store->set("repo",
             repo_file({ref_of("dev", 2), ref_of("main", 1)}, {ref_of("it works!", 0)},
                       {snapshot_info('a', -1, 100, "first"), snapshot_info('b', 0, 200, "second"),
                        snapshot_info('c', 1, 300, "third")},
                       {"gone"}, std::move(more)));
  return store;
}

std::string ref_json(char id) { return R"({"snapshot":")" + base32(object_id(id)) + "\"}"; }

std::shared_ptr<MemoryStore> version_1() {
  const auto store = std::make_shared<MemoryStore>();
  store->set("refs/branch.main/ref.json", ref_json('b'));
  store->set("refs/branch.dev/ref.json", ref_json('a'));
  store->set("refs/tag.it works!/ref.json", ref_json('a'));
  store->set("refs/tag.gone/ref.json", ref_json('a'));
  store->set("refs/tag.gone/ref.json.deleted", "");
  store->set("snapshots/" + base32(object_id('a')),
             snapshot_file('a', {}, {{3, flat_number<std::uint64_t>(100)}}));
  store->set("snapshots/" + base32(object_id('b')),
             snapshot_file('b', {}, {{1, flat_struct(raw_id('a'))}}));
  return store;
}

std::unique_ptr<Repository> open(const std::shared_ptr<Store>& store,
                                 const IcechunkOptions& options = {}) {
  return Repository::find(store, options, 1 << 20);
}
std::string chosen(const std::shared_ptr<Store>& store, const IcechunkOptions& options) {
  try {
    const Repository::Choice choice = open(store, options)->choose();
    return base32(choice.snapshot) + " " + choice.words;
  } catch (const Error& error) {
    return error.what();
  }
}
std::string text(char id, const std::string& words) { return base32(object_id(id)) + " " + words; }

TEST(IcechunkRepository, ChoosesInVersion2) {
  const auto store = version_2();
  EXPECT_EQ(open(store)->version(), 2);
  EXPECT_EQ(chosen(store, {}), text('b', "branch main"));
  EXPECT_EQ(chosen(store, {.branch = "dev"}), text('c', "branch dev"));
  EXPECT_EQ(chosen(store, {.tag = "it works!"}), text('a', "tag it works!"));
  EXPECT_EQ(chosen(store, {.snapshot = base32(object_id('a'))}), text('a', ""));
  EXPECT_EQ(chosen(store, {.branch = "dev", .as_of = 299}), text('b', "branch dev"));
  EXPECT_EQ(chosen(store, {.branch = "dev", .as_of = 300}), text('c', "branch dev"));
  EXPECT_EQ(chosen(store, {.pinned = base32(object_id('a'))}), text('a', "branch main"));
  EXPECT_THAT(chosen(store, {.as_of = 99}), HasSubstr("no snapshot as old"));
  EXPECT_THAT(chosen(store, {.tag = "gone"}), HasSubstr("the tag 'gone' was deleted"));
  EXPECT_THAT(chosen(store, {.branch = "man"}), HasSubstr("did you mean 'main'?"));
  EXPECT_THAT(chosen(store, {.branch = "a/b"}), HasSubstr("cannot be the name"));
  EXPECT_THAT(chosen(store, {.branch = "dev", .tag = "t"}), HasSubstr("give one of --branch"));
  EXPECT_THAT(chosen(store, {.tag = "t", .as_of = 5}), HasSubstr("--as-of goes with a branch"));
  EXPECT_THAT(chosen(store, {.snapshot = "x"}), HasSubstr("not the id of a snapshot"));
}

TEST(IcechunkRepository, ChoosesInVersion1) {
  const auto store = version_1();
  EXPECT_EQ(open(store)->version(), 1);
  EXPECT_EQ(chosen(store, {}), text('b', "branch main"));
  EXPECT_EQ(chosen(store, {.branch = "dev"}), text('a', "branch dev"));
  EXPECT_EQ(chosen(store, {.tag = "it works!"}), text('a', "tag it works!"));
  EXPECT_EQ(chosen(store, {.as_of = 100}), text('a', "branch main"));
  EXPECT_THAT(chosen(store, {.tag = "gone"}), HasSubstr("the tag 'gone' was deleted"));
  EXPECT_THAT(chosen(store, {.tag = "v1"}), HasSubstr("no tag 'v1'"));
  EXPECT_THAT(chosen(store, {.branch = "x"}), HasSubstr("no branch 'x'"));
}

TEST(IcechunkRepository, WithBothTheNewOneCounts) {
  const auto store = version_1();
  store->objects.merge(version_2()->objects);
  EXPECT_EQ(open(store)->version(), 2);
}

TEST(IcechunkRepository, IsNotFoundInOtherStores) {
  const auto store = std::make_shared<MemoryStore>();
  EXPECT_EQ(open(store), nullptr);
  store->set("repo", "<html>anything</html>");
  store->set("refs/branch.main/ref.json", "<html>anything</html>");
  EXPECT_EQ(open(store), nullptr);
}

TEST(IcechunkRepository, DoesNotReadAgainWhatHasBeenRead) {
  const auto signs_of = [](MemoryStore& store) {
    RepositorySigns signs{store.read(kRepositoryEntry, {0, kSignBytes}),
                          store.read(kMainBranch, {0, kSignBytes})};
    EXPECT_TRUE(icechunk::is_repository(signs));
    store.asked.clear();
    return signs;
  };
  const auto found = [](const std::shared_ptr<MemoryStore>& store, RepositorySigns signs,
                        const IcechunkOptions& options = {}) {
    return Repository::find(store, options, 1 << 20, std::move(signs))->choose().snapshot;
  };
  for (const auto& store : {version_1(), version_2()}) {
    EXPECT_EQ(found(store, signs_of(*store)), object_id('b'));
    EXPECT_THAT(store->asked, testing::IsEmpty());
  }
  const auto store = version_1();
  EXPECT_EQ(found(store, signs_of(*store), {.branch = "dev"}), object_id('a'));
  EXPECT_THAT(store->asked, testing::ElementsAre(testing::Pair("refs/branch.dev/ref.json", 1)));

  // A sign whose read failed, or that is only the beginning of its object, is read again.
  const auto both = version_1();
  both->objects.merge(version_2()->objects);
  both->objects.erase("refs/branch.main/ref.json");
  both->set(kMainBranch, ref_json('a'));
  RepositorySigns signs = signs_of(*both);
  signs.entry = std::make_exception_ptr(Error(ErrorCode::timed_out, "late"));
  EXPECT_EQ(found(both, std::move(signs)), object_id('b'));
  EXPECT_THAT(both->asked, testing::ElementsAre(testing::Pair("repo", 1)));
  signs = signs_of(*both);
  signs.entry = std::optional(Buffer(kSignBytes));
  EXPECT_EQ(found(both, std::move(signs)), object_id('b'));
  EXPECT_THAT(both->asked, testing::ElementsAre(testing::Pair("repo", 1)));
}

TEST(IcechunkRepository, AWebPageIsNoSign) {
  const auto store = std::make_shared<MemoryStore>();
  for (const char* key : {kRepositoryEntry, kMainBranch}) store->set(key, "<html>anything</html>");
  EXPECT_FALSE(
      icechunk::is_repository({store->read(kRepositoryEntry, {}), store->read(kMainBranch, {})}));
  EXPECT_FALSE(icechunk::is_repository({}));
  store->set(kMainBranch, R"({"snapshot": "of another kind"})");
  EXPECT_TRUE(icechunk::is_repository({{}, store->read(kMainBranch, {})}));
}

TEST(IcechunkRepository, TellsItsHistory) {
  for (const auto& store : {version_1(), version_2()}) {
    const auto repository = open(store);
    const auto history = repository->history(object_id('b'), 10);
    ASSERT_EQ(history.size(), 2u);
    EXPECT_EQ(history[1].id, object_id('a'));
    EXPECT_EQ(history[1].written_at, 100u);
    EXPECT_EQ(repository->history(object_id('b'), 1).size(), 1u);
    EXPECT_EQ(repository->branches().size(), 2u);
    ASSERT_EQ(repository->tags().size(), 1u);
    EXPECT_EQ(repository->tags()[0].name, "it works!");
  }
}

TEST(IcechunkRepository, RefusesWhatContradictsItself) {
  const auto refusal = [](const std::string& file) {
    const auto store = std::make_shared<MemoryStore>();
    store->set("repo", file);
    return chosen(store, {.as_of = 5});
  };
  EXPECT_THAT(refusal(repo_file({ref_of("main", 1)}, {}, {snapshot_info('a', -1, 1)})),
              HasSubstr("names none of the repository's snapshots"));
  EXPECT_THAT(refusal(repo_file({ref_of("main", 0)}, {}, {snapshot_info('a', 1, 1)})),
              HasSubstr("parent"));
  // A cycle ends.
  EXPECT_THAT(refusal(repo_file({ref_of("main", 0)}, {},
                                {snapshot_info('a', 1, 10), snapshot_info('b', 0, 10)})),
              HasSubstr("no snapshot as old"));
  const Fields offline{
      {5, flat_table({{0, flat_number<std::uint8_t>(2)}, {2, flat_text("being moved")}})}};
  EXPECT_THAT(chosen(version_2(offline), {}), HasSubstr("offline: being moved"));
}

}  // namespace repository_test
}  // namespace batchfs
