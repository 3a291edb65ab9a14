#include "gpu/handoff/batch_windows.h"

#include <cstring>

#include <gmock/gmock.h>
#include <unistd.h>

#include "gpu/handoff/protocol.h"
#include "tests/unit/engine/view/assembled.h"

namespace batchfs::handoff {
namespace batch_windows_test {

std::shared_ptr<const View> view(const std::string& batch) {
  MemoryData data;
  data.declare("v", "<f4", {"time", "x"}, {20000, 3}, {20000, 3})
      .index<std::int16_t>("x", "<i2", {7, 8, 9});
  return parse_view(data.dataset(), R"({"window": {"time": 1, "x": 1}, "batch": )" + batch + "}");
}

template <class T>
T read(const std::vector<std::byte>& bytes, std::size_t at) {
  T value;
  EXPECT_LE(at + sizeof value, bytes.size());
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::vector<std::byte> coordinate_bytes(const View& view) {
  std::vector<std::byte> bytes(coordinates_size(view));
  write_coordinates(view, bytes.data());
  return bytes;
}

TEST(BatchWindows, CoordinatesBeginAtMultiplesOfEight) {
  const std::vector<std::byte> bytes = coordinate_bytes(*view("2"));
  const auto record = read<CoordinateRecord>(bytes, 0);
  EXPECT_EQ(record.offset, 16u);
  EXPECT_EQ(record.bytes, 6u);
  EXPECT_EQ(read<std::int16_t>(bytes, 18), 8);
}

TEST(BatchWindows, AllCoordinatesOfAViewAreSent) {
  MemoryData data;
  data.declare("v", "<f4", {"x", "y"}, {5 << 20, 2}, {5 << 20, 2})
      .index<double>("x", "<f8", std::vector<double>(5 << 20, 1.5))
      .index<std::int16_t>("y", "<i2", {7, 8});
  const auto all = parse_view(data.dataset(), R"({"window": {"x": 1}})");
  ASSERT_EQ(all->coordinates().size(), 2u);
  const std::vector<std::byte> bytes = coordinate_bytes(*all);
  const auto x = read<CoordinateRecord>(bytes, 0), y = read<CoordinateRecord>(bytes, 16);
  EXPECT_EQ(all->coordinates()[0].name, "x");
  EXPECT_EQ(x.bytes, std::uint64_t{40} << 20);
  EXPECT_EQ(y.bytes, 4u);
  EXPECT_EQ(read<std::int16_t>(bytes, y.offset + 2), 8);
}

TEST(BatchWindows, FewGoWithTheMessage) {
  const SentWindows sent = windows_to_send(*view("2"), 0, 2, {}, {});
  EXPECT_EQ(sent.file, nullptr);
  const auto record = read<WindowsRecord>(sent.bytes, 0);
  EXPECT_EQ(record.samples, 2u);
  EXPECT_EQ(record.attached, 0u);
  ASSERT_EQ(sent.bytes.size(), 8 + 6 * 8u);
  // Samples 4 and 5: time 1, x 1 and 2.
  std::vector<std::int64_t> values;
  for (std::size_t i = 0; i < 6; ++i) values.push_back(read<std::int64_t>(sent.bytes, 8 + 8 * i));
  EXPECT_THAT(values, testing::ElementsAre(4, 5, 1, 1, 1, 2));
}

TEST(BatchWindows, ManyAreInAMemoryFile) {
  const SentWindows sent = windows_to_send(*view("5000"), 0, 1, {}, {});
  ASSERT_NE(sent.file, nullptr);
  EXPECT_EQ(sent.bytes.size(), sizeof(WindowsRecord));
  EXPECT_EQ(read<WindowsRecord>(sent.bytes, 0).attached, 1u);
  std::vector<std::int64_t> values(15000);
  ASSERT_EQ(::pread(sent.file->fd(), values.data(), 120000, 0), 120000);
  EXPECT_EQ(values[0], 5000);
  EXPECT_EQ(values[5000], 5000 / 3);
  EXPECT_EQ(values[5001], 5000 % 3);
  char byte = 0;
  EXPECT_EQ(::pwrite(sent.file->fd(), &byte, 1, 0), -1) << "a reader can write to it";
}

TEST(BatchWindows, TheFileTakesMemoryAsLongAsItIsHeld) {
  Budget budget(1 << 20);
  const Reserve reserve = [&budget](std::uint64_t bytes, const std::string& what) {
    auto reservation = budget.try_reserve(bytes);
    if (!reservation) throw Error(ErrorCode::no_memory, what);
    return reservation;
  };
  {
    const SentWindows few = windows_to_send(*view("2"), 0, 2, {}, reserve);
    EXPECT_EQ(budget.used(), 0U);
    const SentWindows sent = windows_to_send(*view("5000"), 0, 1, {}, reserve);
    EXPECT_EQ(budget.used(), 120000U);
  }
  EXPECT_EQ(budget.used(), 0U);
  const auto rest = budget.reserve(1 << 20);
  EXPECT_THROW(windows_to_send(*view("5000"), 0, 1, {}, reserve), Error);
}

TEST(BatchWindows, OfABatchThatHasThemComeFromIt) {
  const auto file = std::make_shared<MemoryFile>(MemoryFiles(false).create("windows", 120000));
  DeliveredBatch delivered;
  delivered.held = file;
  delivered.windows = file.get();
  const Reserve never = [](std::uint64_t, const std::string& what) -> Budget::Reservation {
    throw Error(ErrorCode::no_memory, what);
  };
  EXPECT_EQ(windows_to_send(*view("5000"), 0, 1, delivered, never).file.get(), file.get());
}

}  // namespace batch_windows_test
}  // namespace batchfs::handoff
