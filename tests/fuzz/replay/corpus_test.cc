// Runs each target on its fuzzing corpus, and on each prefix of an entry: the part of fuzzing that
// works with every compiler.

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

extern "C" {
using FuzzTarget = int(const std::uint8_t*, std::size_t);
FuzzTarget fuzz_answers, fuzz_codec, fuzz_fuse_init, fuzz_gpu_decode, fuzz_handoff_reader,
    fuzz_handoff_server, fuzz_icechunk, fuzz_metadata, fuzz_program, fuzz_references,
    fuzz_shard_index, fuzz_values, fuzz_view, fuzz_zip;
}

namespace batchfs {
namespace {

const std::map<std::string, FuzzTarget*> kTargets = {
    {"answers", fuzz_answers},
    {"codec", fuzz_codec},
    {"fuse_init", fuzz_fuse_init},
    {"gpu_decode", fuzz_gpu_decode},
    {"handoff_reader", fuzz_handoff_reader},
    {"handoff_server", fuzz_handoff_server},
    {"icechunk", fuzz_icechunk},
    {"metadata", fuzz_metadata},
    {"program", fuzz_program},
    {"references", fuzz_references},
    {"shard_index", fuzz_shard_index},
    {"values", fuzz_values},
    {"view", fuzz_view},
    {"zip", fuzz_zip},
};

std::vector<std::uint8_t> bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Corpus : public testing::TestWithParam<std::string> {};

TEST_P(Corpus, EndsWellWhole) {
  std::size_t inputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(BATCHFS_FUZZ_CORPUS) / GetParam())) {
    SCOPED_TRACE(entry.path().filename().string());
    const std::vector<std::uint8_t> input = bytes_of(entry.path());
    ASSERT_EQ(kTargets.at(GetParam())(input.data(), input.size()), 0);
    ++inputs;
  }
  EXPECT_GT(inputs, 0u);
}

TEST_P(Corpus, EndsWellWhereverItIsCut) {
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(BATCHFS_FUZZ_CORPUS) / GetParam())) {
    SCOPED_TRACE(entry.path().filename().string());
    const std::vector<std::uint8_t> input = bytes_of(entry.path());
    for (std::size_t size = 0; size < input.size(); size += 1 + input.size() / 64) {
      const std::vector<std::uint8_t> cut(input.begin(),
                                          input.begin() + static_cast<std::ptrdiff_t>(size));
      ASSERT_EQ(kTargets.at(GetParam())(cut.data(), cut.size()), 0);
    }
  }
}

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const auto& [name, target] : kTargets) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Targets, Corpus, testing::ValuesIn(names()),
                         [](const auto& each) { return each.param; });

TEST(FuzzTargets, AllAreKnownHere) {
  std::set<std::string> found;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(BATCHFS_FUZZ_CORPUS) / ".."))
    if (entry.path().extension() == ".cc") found.insert(entry.path().stem().string());
  const std::vector<std::string> known = names();
  EXPECT_EQ(found, std::set<std::string>(known.begin(), known.end()));
}

}  // namespace
}  // namespace batchfs
