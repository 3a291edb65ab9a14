#include "engine/write/piece_copy.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>

#include <unistd.h>

#include <gtest/gtest.h>

#include "engine/zarr/chunk_grid.h"

namespace batchfs {
namespace piece_copy_test {

class PieceCopyTest : public testing::Test {
 protected:
  PieceCopyTest() { std::filesystem::remove_all(path_); }
  ~PieceCopyTest() override { std::filesystem::remove_all(path_); }

  PieceForm form() const { return {*output_, "pieces", shape_, 4, plan_}; }

  /// The value of an element is its number in the array.
  std::vector<std::uint32_t> values_of(const Box& region) const {
    std::vector<std::uint32_t> values;
    for (std::int64_t number = 0; number < element_count(region.shape); ++number) {
      std::int64_t rest = number, place = 0, step = 1;
      for (std::size_t d = shape_.size(); d-- > 0;) {
        place += (region.start[d] + rest % region.shape[d]) * step;
        rest /= region.shape[d];
        step *= shape_[d];
      }
      values.push_back(static_cast<std::uint32_t>(place));
    }
    return values;
  }

  void write_all() const {
    const ChunkGrid grid(shape_, plan_.read_region);
    for (std::int64_t n = 0; n < grid.chunk_count(); ++n) {
      const std::vector<std::uint32_t> values = values_of(grid.box(grid.chunk(n)));
      PieceWriter writer(form(), grid.chunk(n));
      for (std::size_t i = writer.items(); i-- > 0;)  // in any order
        writer.write(i, reinterpret_cast<const std::byte*>(values.data()));
    }
  }

  std::vector<std::uint32_t> read(const Dims& index) const {
    const Box region = ChunkGrid(shape_, plan_.write_region).box(index);
    std::vector<std::uint32_t> values(static_cast<std::size_t>(region.elements()), UINT32_MAX);
    const PieceReader reader(form(), index);
    for (std::size_t i = 0; i < reader.items(); ++i)
      reader.read(i, reinterpret_cast<std::byte*>(values.data()));
    return values;
  }

  void expect_all_read() const {
    const ChunkGrid grid(shape_, plan_.write_region);
    for (std::int64_t n = 0; n < grid.chunk_count(); ++n)
      EXPECT_EQ(read(grid.chunk(n)), values_of(grid.box(grid.chunk(n)))) << n;
  }

  const std::string path_ = testing::TempDir() + "piece_copy-" + std::to_string(::getpid());
  const std::shared_ptr<OutputStore> output_ = open_local_output(path_);
  Dims shape_;
  RechunkPlan plan_;
};

TEST_F(PieceCopyTest, PiecesJoinToTheValuesOfEachRegion) {
  std::mt19937 random(3);
  const auto draw = [&random](std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(1, most)(random);
  };
  for (int i = 0; i < 30; ++i) {
    SCOPED_TRACE(i);
    shape_ = {};
    plan_ = {};
    for (std::int64_t d = draw(4); d > 0; --d) {
      shape_.push_back(draw(13));
      plan_.read_region.push_back(draw(shape_.back()));
      plan_.write_region.push_back(draw(shape_.back()));
    }
    write_all();
    expect_all_read();
  }
}

TEST_F(PieceCopyTest, LargePiecesHaveManySlabs) {
  shape_ = {3, 500, 301};
  plan_.read_region = {2, 500, 301};
  plan_.write_region = {3, 499, 150};
  write_all();
  expect_all_read();
}

TEST_F(PieceCopyTest, ADamagedFileIsNamed) {
  shape_ = {64, 600};
  plan_.read_region = {64, 300};
  plan_.write_region = {32, 600};
  write_all();
  const std::string key = form().key({0, 1});
  const std::string file = path_ + "/" + key;
  const auto size = std::filesystem::file_size(file);
  std::string whole(size, 0);
  std::ifstream(file, std::ios::binary).read(whole.data(), static_cast<std::streamsize>(size));
  const auto damaged = [&](const std::string& bytes) {
    std::ofstream(file, std::ios::binary) << bytes;
    try {
      // Both regions of the second pass read of it.
      return read({0, 0}) != values_of({{0, 0}, {32, 600}}) ||
             read({1, 0}) != values_of({{32, 0}, {32, 600}});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::corrupt) << error.what();
      EXPECT_NE(error.where().find(key), std::string::npos) << error.where();
      return false;
    }
  };
  for (std::size_t length = 0; length < size; length += 1 + length / 3) {
    EXPECT_FALSE(damaged(whole.substr(0, length))) << length;
  }
  for (std::size_t at = 0; at < size; at += 1 + at / 8) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x41);
    EXPECT_FALSE(damaged(changed)) << at;
  }
  EXPECT_FALSE(damaged(whole));
}

}  // namespace piece_copy_test
}  // namespace batchfs
