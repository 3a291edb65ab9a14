#include "fs/tree.h"

#include <set>

#include <gmock/gmock.h>

#include "engine/base/strings.h"
#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace tree_test {

using testing::ElementsAre;

std::shared_ptr<const View> view_of(const Shape& shape, const std::string& json) {
  MemoryData data;
  Names dims{"t", "x", "y"};
  dims.resize(shape.size());
  data.declare("v", "|i1", dims, shape, Shape(shape.size(), 1));
  return parse_view(data.dataset(), json);
}

TreeArray array(const std::string& path, const Dims& shape, const Dims& chunks) {
  return {path, ChunkGrid(shape, chunks)};
}

FileNumber walk(const Tree& tree, std::initializer_list<std::string_view> names) {
  FileNumber at = kRootIno;
  for (std::string_view name : names) {
    const auto next = tree.lookup(at, name);
    if (!next) return 0;
    at = *next;
  }
  return at;
}

std::vector<std::string> names(const Tree& tree, FileNumber directory, std::uint64_t offset = 0,
                               std::size_t most = SIZE_MAX) {
  std::vector<std::string> result;
  tree.list(directory, offset, [&](const std::string& name, FileNumber, std::uint64_t) {
    result.push_back(name);
    return result.size() < most;
  });
  return result;
}

TEST(Tree, ChunkNamesAreIndicesJoinedByDots) {
  EXPECT_EQ(chunk_file_stem({3, 0, 12}), "3.0.12");
  EXPECT_EQ(chunk_file_stem({7}), "7");
  EXPECT_EQ(chunk_file_stem({}), "0");
}

TEST(Tree, PathsAreThatOfTheNamesThatLeadThere) {
  const Tree tree({"", "g"}, {array("g/a", {4, 4}, {2, 2})},
                  {view_of({7}, R"({"window": {"t": 1}, "formats": ["npy", "zarr"]})")});
  for (const char* path :
       {"store.json", ".batchfs/log", "arrays/g/a/chunks/1.0.npy",
        "views/given/epoch-0012/batch-000003.npy", "views/given/rank-1-of-4/epoch-0000",
        "views/given/rank-1-of-4/epoch-0000/batch-000000.zarr/.zgroup"}) {
    FileNumber at = kRootIno;
    for (const std::string& name : split(path, '/'))
      if (at != 0) at = tree.lookup(at, name).value_or(0);
    ASSERT_NE(at, 0u) << path;
    EXPECT_EQ(tree.path(at), path);
  }
  EXPECT_EQ(tree.path(kRootIno), "");
  EXPECT_EQ(tree.path(~FileNumber{0}), "");
}

TEST(Tree, ListsAMillionBatchesByPages) {
  const Tree tree({""}, {},
                  {view_of({1'000'000}, R"({"window": {"t": 1}, "formats": ["npy", "npz"]})")});
  const FileNumber epoch = walk(tree, {"views", "given", "epoch-0000"});
  ASSERT_NE(epoch, 0u);
  // Reads like the kernel: each page continues after the last entry of the previous one.
  std::uint64_t offset = 0, count = 0;
  std::string last;
  for (bool more = true; more;) {
    std::size_t in_page = 0;
    more = false;
    tree.list(epoch, offset, [&](const std::string& name, FileNumber number, std::uint64_t next) {
      if (in_page == 1000) {
        more = true;
        return false;
      }
      if (count % 99'991 == 0) {
        EXPECT_EQ(tree.lookup(epoch, name), number);
        EXPECT_EQ(tree.parent(number), epoch);
      }
      EXPECT_GT(next, offset);
      offset = next;
      ++in_page;
      ++count;
      last = name;
      return true;
    });
  }
  EXPECT_EQ(count, 3'000'000u);
  EXPECT_EQ(last, "batch-999999.json");
  EXPECT_THAT(names(tree, epoch, 2'999'997),
              ElementsAre("batch-999999.npy", "batch-999999.npz", "batch-999999.json"));
  EXPECT_THAT(names(tree, epoch, 3'000'000), ElementsAre());
  EXPECT_THAT(names(tree, epoch, UINT64_MAX), ElementsAre());
}

TEST(Tree, NumbersWithMoreDigitsThanUsual) {
  const Tree tree({""}, {}, {view_of({5'000'000}, R"({"window": {"t": 1}, "epochs": 20000})")});
  EXPECT_NE(walk(tree, {"views", "given", "epoch-0000", "batch-4999999.npy"}), 0u);
  EXPECT_EQ(walk(tree, {"views", "given", "epoch-0000", "batch-5000000.npy"}), 0u);
  EXPECT_EQ(walk(tree, {"views", "given", "epoch-0000", "batch-0999999.npy"}), 0u);
  EXPECT_NE(walk(tree, {"views", "given", "epoch-0000", "batch-999999.npy"}), 0u);
  EXPECT_NE(walk(tree, {"views", "given", "epoch-12345"}), 0u);
  EXPECT_EQ(walk(tree, {"views", "given", "epoch-01234"}), 0u);
  EXPECT_THAT(names(tree, walk(tree, {"views", "given"}), 3 + 9999, 2),
              ElementsAre("epoch-9999", "epoch-10000"));
}

TEST(Tree, EveryRankOfEveryWorldHasItsOwnNumbers) {
  const Tree tree(
      {""}, {},
      {view_of({7}, R"({"window": {"t": 1}, "batch": {"size": 1, "remainder": "pad"}})"),
       view_of({5}, R"({"name": "other", "window": {"t": 1}, "formats": ["zarr"]})")});
  std::set<FileNumber> seen;
  auto visit = [&](auto&& self, FileNumber directory) -> void {
    tree.list(directory, 0, [&](const std::string& name, FileNumber number, std::uint64_t) {
      EXPECT_TRUE(seen.insert(number).second) << name;
      EXPECT_EQ(tree.lookup(directory, name), number) << name;
      EXPECT_EQ(tree.parent(number), directory) << name;
      const std::string above = tree.path(directory);
      EXPECT_EQ(tree.path(number), above.empty() ? name : above + "/" + name);
      if (tree.is_directory(*tree.node(number))) self(self, number);
      return true;
    });
  };
  visit(visit, kRootIno);
  for (const char* view : {"given", "other"})
    for (std::int64_t world : {1, 2, 3, 7, 8, 65536})
      for (std::int64_t rank : {std::int64_t{0}, world / 2, world - 1}) {
        const FileNumber number = walk(
            tree, {"views", view, "rank-" + std::to_string(rank) + "-of-" + std::to_string(world)});
        ASSERT_NE(number, 0u);
        if (!seen.insert(number).second) continue;  // rank 0 of 1 three times
        visit(visit, number);
        const FileNumber epoch = walk(
            tree, {"views", view, "rank-" + std::to_string(rank) + "-of-" + std::to_string(world),
                   "epoch-0005"});
        EXPECT_TRUE(seen.insert(epoch).second);
        visit(visit, epoch);
      }
}

TEST(Tree, RanksHaveTheirShareOfTheBatches) {
  auto count = [](const char* remainder, std::int64_t rank, std::int64_t world) {
    const Tree tree({""}, {},
                    {view_of({7}, R"({"window": {"t": 1}, "batch": {"size": 1, "remainder": ")" +
                                      std::string(remainder) + "\"}}")});
    const FileNumber epoch =
        walk(tree, {"views", "given",
                    "rank-" + std::to_string(rank) + "-of-" + std::to_string(world), "epoch-0000"});
    return names(tree, epoch).size() / 2;  // .npy and .json
  };
  EXPECT_EQ(count("keep", 0, 3), 3u);
  EXPECT_EQ(count("keep", 2, 3), 2u);
  EXPECT_EQ(count("drop", 0, 3), 2u);
  EXPECT_EQ(count("pad", 2, 3), 3u);
  EXPECT_EQ(count("keep", 7, 8), 0u);
  EXPECT_EQ(count("pad", 7, 8), 1u);
}

TEST(Tree, TheLargestViewsAreNumberedRightly) {
  // The maximum number of batches, each of several files, times worlds and epochs.
  const std::int64_t n = INT64_C(1) << 30;
  const auto huge = view_of({n, n}, R"({"window": {"t": 1, "x": 1}, "formats": ["npy", "npz"]})");
  const Tree many({""}, {}, std::vector<std::shared_ptr<const View>>(500, huge));
  const FileNumber last =
      walk(many, {"views", "given", "epoch-999999999", "batch-1152921504606846975.json"});
  ASSERT_NE(last, 0u);
  EXPECT_EQ(many.node(last)->item, (INT64_C(1) << 60) - 1);
  EXPECT_EQ(many.path(last), "views/given/epoch-999999999/batch-1152921504606846975.json");
  // A billion batches are fine, with a thousand epochs and more.
  const auto large = view_of({1'000'000'000}, R"({"window": {"t": 1}, "epochs": 1000})");
  const Tree tree({""}, {},
                  {large, view_of({1'000'000'000}, R"({"name": "b", "window": {"t": 1}})")});
  for (const char* view : {"given", "b"}) {
    const FileNumber batch =
        walk(tree, {"views", view, "rank-65535-of-65536", "epoch-0999", "batch-015257.npy"});
    ASSERT_NE(batch, 0u) << view;
    const Node node = tree.node(batch).value();
    EXPECT_EQ(node.kind, Node::Kind::batch);
    EXPECT_EQ(node.epoch, 999);
    EXPECT_EQ(node.rank, 65535);
    EXPECT_EQ(node.world, 65536);
    EXPECT_EQ(node.item, 15257);
  }
}

TEST(Tree, ChunksOfLargeArraysAreFoundWithoutATable) {
  const std::int64_t n = INT64_C(1) << 29;
  const Tree tree({""}, {array("a", {10}, {1}), array("big", {n, n}, {1, 1}), array("c", {5}, {2})},
                  {});
  const FileNumber chunks = walk(tree, {"arrays", "big", "chunks"});
  const FileNumber last = *tree.lookup(chunks, "536870911.536870911.npy");
  EXPECT_EQ(tree.node(last)->item, n * n - 1);
  EXPECT_EQ(tree.parent(last), chunks);
  EXPECT_FALSE(tree.lookup(chunks, "536870912.0.npy"));
  EXPECT_THAT(names(tree, chunks, static_cast<std::uint64_t>(n) + 7, 1), ElementsAre("1.7.npy"));
  EXPECT_THAT(names(tree, walk(tree, {"arrays", "c", "chunks"})),
              ElementsAre("0.npy", "1.npy", "2.npy"));
}

TEST(Tree, EveryChunkOfTheLargestArraysHasItsNumber) {
  const std::int64_t n = INT64_C(1) << 31;
  const Tree tree({""}, {array("a", {n, n}, {1, 1}), array("b", {n, n}, {1, 1})}, {});
  for (const char* name : {"a", "b"}) {
    const FileNumber last = walk(tree, {"arrays", name, "chunks", "2147483647.2147483647.npy"});
    ASSERT_NE(last, 0u);
    EXPECT_EQ(tree.node(last)->item, (INT64_C(1) << 62) - 1);
    EXPECT_EQ(tree.path(last), std::string("arrays/") + name + "/chunks/2147483647.2147483647.npy");
  }
}

TEST(Tree, EveryEpochOfManyViewsHasItsNumber) {
  constexpr int kViews = 500;
  std::vector<std::shared_ptr<const View>> views;
  for (int v = 0; v < kViews; ++v)
    views.push_back(view_of({1'000'000}, R"({"name": "v)" + std::to_string(v) +
                                             R"(", "window": {"t": 1}, "epochs": 1000000000})"));
  const Tree tree({""}, {}, views);
  std::set<FileNumber> seen;
  for (const char* view : {"v0", "v1", "v499"}) {
    for (const char* epoch : {"epoch-0000", "epoch-99999", "epoch-999999999"}) {
      for (const char* rank : {"", "rank-0-of-1", "rank-65535-of-65536"}) {
        FileNumber at = walk(tree, {"views", view});
        std::string path = std::string("views/") + view;
        for (const std::string& name :
             {std::string(rank), std::string(epoch), std::string("batch-000007.npy")}) {
          if (name.empty()) continue;
          const FileNumber above = at;
          at = tree.lookup(at, name).value_or(0);
          ASSERT_NE(at, 0u) << path << "/" << name;
          EXPECT_EQ(tree.parent(at), above);
          path += "/" + name;
        }
        EXPECT_TRUE(seen.insert(at).second) << path;
        EXPECT_EQ(tree.path(at), path);
      }
    }
    EXPECT_EQ(walk(tree, {"views", view, "epoch-1000000000"}), 0u);
    EXPECT_THAT(names(tree, walk(tree, {"views", view}), 3 + 999'999'998),
                ElementsAre("epoch-999999998", "epoch-999999999"));
  }
}

TEST(Tree, NothingIsBelowAnArray) {
  // No store may contain this, but consolidated metadata can claim it.
  const Tree tree(
      {"", "a", "a/chunks", "g"},
      {array("a", {2}, {1}), array("a/chunks", {2}, {1}), array("a/values.npy", {2}, {1}),
       array("a/chunks/0.npy", {3}, {1}), array("g/a", {2}, {1})},
      {});
  EXPECT_THAT(names(tree, walk(tree, {"arrays", "a"})),
              ElementsAre("chunks", "metadata.json", "summary.txt", "values.npy"));
  EXPECT_THAT(names(tree, walk(tree, {"arrays", "a", "chunks"})), ElementsAre("0.npy", "1.npy"));
  EXPECT_EQ(tree.node(walk(tree, {"arrays", "a", "values.npy"}))->kind, Node::Kind::array_values);
  EXPECT_EQ(tree.node(walk(tree, {"arrays", "a", "chunks"}))->kind, Node::Kind::chunk_directory);
  EXPECT_THAT(names(tree, walk(tree, {"arrays", "g", "a", "chunks"})),
              ElementsAre("0.npy", "1.npy"));
}

TEST(Tree, AStoreThatIsAnArrayIsItsOwnDirectory) {
  const Tree tree({}, {array("", {2}, {1})}, {});
  EXPECT_THAT(names(tree, walk(tree, {"arrays"})),
              ElementsAre("chunks", "metadata.json", "summary.txt", "values.npy"));
}

TEST(Tree, UnreadableArraysHaveNoValues) {
  const Tree tree({""}, {TreeArray{"a", std::nullopt}}, {});
  EXPECT_THAT(names(tree, walk(tree, {"arrays", "a"})),
              ElementsAre("metadata.json", "summary.txt"));
}

TEST(Tree, ControlFilesAreHiddenButThere) {
  const Tree tree({""}, {}, {}, true);
  EXPECT_THAT(names(tree, kRootIno), ElementsAre("arrays", "store.json", "summary.txt", "views"));
  for (std::string_view name : kControlNames) EXPECT_NE(walk(tree, {".batchfs", name}), 0u) << name;
  EXPECT_EQ(tree.node(walk(tree, {".batchfs", "log"}))->index,
            static_cast<std::uint32_t>(ControlFile::log));
}

TEST(Tree, TheHandoffIsALinkWhereThereIsOne) {
  const Tree with({""}, {array("a", {2}, {1})}, {}, true),
      without({""}, {array("a", {2}, {1})}, {});
  const FileNumber link = walk(with, {".batchfs", "handoff.sock"});
  EXPECT_TRUE(Tree::is_link(*with.node(link)));
  EXPECT_FALSE(Tree::is_link(*with.node(walk(with, {".batchfs", "log"}))));
  EXPECT_THAT(names(without, walk(without, {".batchfs"})),
              ElementsAre("config.json", "log", "metrics", "status.json", "trace.json"));
  EXPECT_EQ(walk(with, {"arrays", "a", "values.npy"}),
            walk(without, {"arrays", "a", "values.npy"}));
}

TEST(Tree, NumbersStayTheSameForTheSameStore) {
  // A restarted daemon on the same store gives every file its old number.
  auto make = [] {
    return Tree({"", "g"}, {array("g/a", {9}, {2}), array("z", {3, 3}, {2, 2})},
                {view_of({7}, R"({"window": {"t": 1}})")});
  };
  const Tree one = make(), two = make();
  for (auto path : {std::initializer_list<std::string_view>{"arrays", "z", "chunks", "1.1.npy"},
                    {"views", "given", "epoch-0003", "batch-000006.json"},
                    {"views", "given", "rank-2-of-5", "epoch-0000", "batch-000000.npy"}}) {
    EXPECT_NE(walk(one, path), 0u);
    EXPECT_EQ(walk(one, path), walk(two, path));
  }
}

}  // namespace tree_test
}  // namespace batchfs
