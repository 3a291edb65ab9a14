// Outputs that several processes write, of which some are killed, or find the disk full.

#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <random>
#include <thread>

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/write/prediction/prediction_objects.h"
#include "tests/unit/engine/store/temporary_directory.h"
#include "tests/unit/engine/write/prediction/prediction_oracle.h"

namespace batchfs {
namespace prediction_runs_test {

using testing::HasSubstr;

/// Tiles that overlap along both dimensions; every chunk has samples of all ranks.
class PredictionRunsTest : public testing::Test {
 protected:
  PredictionRunsTest() {
    options_.output = folder_ / "o";
    options_.overlap = Overlap::cosine;
    options_.chunks = {{"lat", 16}, {"lon", 16}};
    options_.memory = 20'000;
    options_.threads = 2;
  }

  PredictionOptions of_rank(int rank, int world) const {
    PredictionOptions options = options_;
    options.rank = rank;
    options.world = world;
    return options;
  }

  void write_some(PredictionWriter& writer, int rank, int world,
                  std::size_t limit = SIZE_MAX) const {
    const std::vector<bool> done = writer.done();
    for (std::size_t i = static_cast<std::size_t>(rank); i < samples_.size() && limit > 0;
         i += static_cast<std::size_t>(world)) {
      if (done[i]) continue;
      --limit;
      const std::vector<std::int64_t> one{samples_.numbers[i]};
      const std::vector<float> values = tensor_values(array_, one);
      writer.write("t", one, as_values(values, array_, 1));
    }
  }

  void write_rank(int rank, int world) const {
    PredictionWriter writer({array_}, samples_, of_rank(rank, world));
    write_some(writer, rank, world);
    writer.close();
  }

  /// Runs a function in another process, which writes its error into a file.
  pid_t start(const std::function<void()>& run, const std::string& said) const {
    const pid_t child = ::fork();
    if (child != 0) return child;
    try {
      run();
    } catch (const std::exception& error) {
      std::ofstream(said) << error.what();
      ::_exit(1);
    }
    ::_exit(0);
  }

  static int wait_for(pid_t child) {
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status;
  }

  static std::string text_of(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  /// Writes in another process, so that this one stays without threads.
  void write_alone() const {
    EXPECT_EQ(wait_for(start([this] { write_rank(0, 1); }, folder_ / "said")), 0)
        << text_of(folder_ / "said");
  }

  std::map<std::string, std::string> files(const std::string& folder) const {
    std::map<std::string, std::string> result;
    const std::filesystem::path root = folder_ / folder;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root))
      if (entry.is_regular_file())
        result[entry.path().lexically_relative(root)] = text_of(entry.path());
    return result;
  }

  const TemporaryDirectory folder_;
  PredictionOptions options_;
  const PredictionSamples samples_ =
      grid_samples({{0, 1, 2, 3, 4, 5}, {0, 9, 18, 27, 36}, {0, 9, 18, 27, 36}});
  const PredictedArray array_{.name = "p",
                              .tensor = "t",
                              .axes = {window_axis("time", 6, 0, 1), window_axis("lat", 50, 1, 14),
                                       window_axis("lon", 50, 2, 14)},
                              .order = {0, 1, 2},
                              .tensor_shape = {1, 14, 14},
                              .tensor_dims = {"sample", "time", "lat", "lon"},
                              .type = float32()};
};

/// Ranks that are processes of their own. A fork of a process with threads of oneTBB is none of
/// these: ThreadSanitizer cannot follow the threads of such a child. GoogleTest runs suites with this
/// ending before all others.
using PredictionRanksDeathTest = PredictionRunsTest;

TEST_F(PredictionRanksDeathTest, RanksThatAreKilledAtAnyMomentAreRunAgain) {
  options_.output = folder_ / "alone";
  write_alone();
  const auto alone = files("alone");
  std::mt19937 random(3);
  constexpr int kWorld = 3;
  for (int round = 0; round < 6; ++round) {
    options_.output = folder_ / std::to_string(round);
    for (int attempt = 0; attempt < 3; ++attempt) {
      std::vector<pid_t> ranks;
      for (int rank = 0; rank < kWorld; ++rank)
        ranks.push_back(start([&] { write_rank(rank, kWorld); }, folder_ / "said"));
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 60));
      for (const pid_t rank : ranks)
        if (random() % 3 != 0) ::kill(rank, SIGKILL);
      // The rank that ends last fails when samples are missing.
      for (const pid_t rank : ranks) wait_for(rank);
    }
    std::vector<pid_t> ranks;
    for (int rank = 0; rank < kWorld; ++rank)
      ranks.push_back(start([&] { write_rank(rank, kWorld); }, folder_ / "said"));
    for (const pid_t rank : ranks) EXPECT_EQ(wait_for(rank), 0) << text_of(folder_ / "said");
    EXPECT_EQ(files(std::to_string(round)), alone);
  }
}

TEST_F(PredictionRunsTest, ARankThatBeganAgainHasNotEnded) {
  {
    PredictionWriter first({array_}, samples_, of_rank(0, 2));
    first.close();
  }
  PredictionWriter again({array_}, samples_, of_rank(0, 2));
  write_rank(1, 2);  // is not the last
  EXPECT_FALSE(again.finished());
  write_some(again, 0, 2);
  again.close();
  EXPECT_TRUE(again.finished());
}

TEST_F(PredictionRunsTest, ASuspendedRankMayBeginAgainAtOnce) {
  PredictionWriter first({array_}, samples_, options_);
  write_some(first, 0, 1, 7);
  first.suspend();
  first.suspend();
  first.close();  // does not finish it
  EXPECT_FALSE(first.finished());
  EXPECT_EQ(first.missing(), samples_.size() - 7);
  PredictionWriter again({array_}, samples_, options_);
  EXPECT_EQ(again.missing(), samples_.size() - 7);
  write_some(again, 0, 1);
  again.close();
  again.suspend();
  EXPECT_TRUE(again.finished());
}

TEST_F(PredictionRunsTest, PartsThatNoRankHasPutTogetherArePutAtTheEnd) {
  { PredictionWriter writer({array_}, samples_, options_); }
  const PredictionFolder folder(options_.output);
  const PredictionObjects objects({array_}, samples_, options_, folder);
  for (std::int64_t number = 0; number < objects.placements()[0].objects(); ++number) {
    ObjectSamples all;
    for (std::size_t row = 0; row < samples_.size(); ++row) {
      const auto boxes = objects.placements()[0].boxes(number, objects.starts_of(row));
      if (boxes.empty()) continue;
      Buffer values(static_cast<std::size_t>(Placement::elements(boxes)) * 4);
      std::fill(values.span().begin(), values.span().end(), std::byte{0});
      all[samples_.numbers[row]] = std::move(values);
    }
    objects.put_part({0, number}, all);
  }
  PredictionWriter writer({array_}, samples_, options_);
  EXPECT_EQ(writer.missing(), 0u);
  writer.close();
  EXPECT_TRUE(writer.finished());
}

TEST_F(PredictionRanksDeathTest, AFileThatCannotGrowIsAnErrorWithTheNextStep) {
  const pid_t child = start(
      [this] {
        std::signal(SIGXFSZ, SIG_IGN);
        const rlimit small{600, 600};
        ::setrlimit(RLIMIT_FSIZE, &small);
        options_.compression = parse_compression("none");
        write_rank(0, 1);
      },
      folder_ / "said");
  // The file size limit also applies to the child's error file.
  EXPECT_NE(wait_for(child), 0);
  EXPECT_THAT(text_of(folder_ / "said"),
              HasSubstr("File too large; run the same program again: it continues"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "o/zarr.json"));
}

TEST_F(PredictionRanksDeathTest, AFullDiskIsAnErrorAndTheRunContinues) {
  std::filesystem::create_directory(folder_ / "small");
  const pid_t child = start(
      [this] {
        const int flags = ::geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER;
        const std::string place = folder_ / "small";
        if (::unshare(flags) != 0 ||
            ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            ::mount("tmpfs", place.c_str(), "tmpfs", 0, "size=100k") != 0)
          throw std::runtime_error("cannot mount");
        options_.output = place + "/o";
        std::string said;
        try {
          write_rank(0, 1);
        } catch (const Error& error) {
          said = error.what();
        }
        if (std::filesystem::exists(place + "/o/zarr.json")) throw std::runtime_error("finished");
        if (::mount("tmpfs", place.c_str(), "tmpfs", MS_REMOUNT, "size=9m") != 0)
          throw std::runtime_error("cannot mount");
        write_rank(0, 1);
        if (!std::filesystem::exists(place + "/o/zarr.json")) throw std::runtime_error("missing");
        throw std::runtime_error(said);
      },
      folder_ / "said");
  EXPECT_NE(wait_for(child), 0);
  const std::string said = text_of(folder_ / "said");
  if (said == "cannot mount") GTEST_SKIP() << "no file system of its own";
  EXPECT_THAT(said, HasSubstr("No space left on device; make room and run the same program again"));
}

}  // namespace prediction_runs_test
}  // namespace batchfs
