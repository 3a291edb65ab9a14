// Labels of a batch, looked up in coordinates. reader_test.cc tests malformed data of a server.
#include "gpu/reader/labels.h"

#include <cstring>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/base/error.h"

namespace batchfs::reader {
namespace labels_test {

template <class T>
class OneCoordinate final : public Coordinates {
 public:
  explicit OneCoordinate(std::vector<T> values) : values_(std::move(values)) {}
  std::span<const std::byte> values(std::size_t) const override {
    return std::as_bytes(std::span(values_));
  }

 private:
  const std::vector<T> values_;
};

/// The label of a sample that begins at the second of three values.
template <class T>
Label second(const std::string& dtype, const std::vector<T>& values) {
  auto schema = std::make_shared<Schema>();
  schema->coordinates.push_back({"c", parse_dtype(dtype), 3});
  schema->windows.push_back({.dim = "c", .length = 3, .coordinate = 0});
  Batch batch;
  batch.schema = schema;
  batch.samples = 1;
  batch.coordinates = std::make_shared<OneCoordinate<T>>(values);
  batch.windows = std::make_shared<Windows>(*schema, 1, Windows::Values{0, 1});
  return label_of(batch, 0, "c");
}

TEST(Labels, AreIntegersNumbersOrNanoseconds) {
  using Type = Label::Type;
  EXPECT_EQ(second<std::int8_t>("int8", {0, -3, 0}).integer, -3);
  EXPECT_EQ(second<std::uint16_t>("uint16", {0, 65535, 0}).integer, 65535);
  EXPECT_EQ(second<std::int64_t>("int64", {0, INT64_MIN, 0}).integer, INT64_MIN);
  EXPECT_EQ(second<std::int64_t>("int64", {0, 1, 0}).type, Type::integer);
  EXPECT_EQ(second<std::uint64_t>("uint64", {0, UINT64_MAX, 0}).type, Type::number);
  EXPECT_EQ(second<std::uint64_t>("uint64", {0, UINT64_MAX, 0}).number, 0x1p64);
  EXPECT_EQ(second<float>("float32", {0, 2.5, 0}).number, 2.5);
  EXPECT_EQ(second<double>("float64", {0, -0.125, 0}).type, Type::number);
  // numpy.datetime64("2000-01-01T06").astype("M8[ns]").astype("i8")
  const std::int64_t ns = 946706400000000000;
  EXPECT_EQ(second<std::int64_t>("datetime64[ns]", {0, ns, 0}).integer, ns);
  EXPECT_EQ(second<std::int64_t>("datetime64[s]", {0, ns / 1000'000'000, 0}).integer, ns);
  EXPECT_EQ(second<std::int64_t>("datetime64[s]", {0, 1, 0}).type, Type::time);
  EXPECT_EQ(second<std::int64_t>("datetime64[s]", {0, INT64_MIN, 0}).integer, INT64_MIN);
  EXPECT_EQ(second<std::int64_t>("timedelta64[h]", {0, 6, 0}).integer, 21'600'000'000'000);
  EXPECT_EQ(second<std::int64_t>("timedelta64[h]", {0, 6, 0}).type, Type::duration);
}

TEST(Labels, WhatHasNoNumberIsRefused) {
  EXPECT_THROW(second<std::int32_t>("<U1", {65, 66, 67}), Error);
  EXPECT_THROW(second<std::int64_t>("datetime64[Y]", {0, 1, 2}), Error);
  EXPECT_THROW(second<std::int64_t>("datetime64[s]", {0, INT64_MAX / 2, 2}), Error);
}

TEST(Labels, WindowsAreLoadedOnceAndChecked) {
  auto schema = std::make_shared<Schema>();
  schema->windows.push_back({.dim = "x", .length = 3});
  int loads = 0;
  const Windows good(schema, 2, [&] {
    ++loads;
    return Windows::Values{4, 5, 0, 2};
  });
  EXPECT_EQ(loads, 0);
  EXPECT_EQ(good.values(), (Windows::Values{4, 5, 0, 2}));
  EXPECT_EQ(good.values().size(), 4u);
  EXPECT_EQ(loads, 1);
  const Windows outside(schema, 2, [] { return Windows::Values{4, 5, 0, 3}; });
  EXPECT_THROW(outside.values(), Error);
  EXPECT_THROW(outside.values(), Error);
  EXPECT_THROW(Windows(*schema, 2, {4, 5, 0}), Error);
  EXPECT_THROW(Windows(*schema, -1, {}), Error);
}

TEST(Labels, ACoordinateThatIsLeftOutHasNone) {
  auto schema = std::make_shared<Schema>();
  schema->coordinates.push_back({"c", parse_dtype("int32"), 3});
  const int fd = ::memfd_create("coordinates", 0);
  const handoff::CoordinateRecord record{sizeof record, 0};
  EXPECT_EQ(::write(fd, &record, sizeof record), static_cast<ssize_t>(sizeof record));
  const auto coordinates =
      received_coordinates(Mapping::of_file(fd, sizeof record), 0, {sizeof record, 1, 0}, schema);
  ::close(fd);
  try {
    coordinates->values(0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_supported);
  }
}

TEST(Labels, AnOlderServerDoesNotTellThem) {
  const Batch batch;
  EXPECT_THROW(windows_of(batch), Error);
}

}  // namespace labels_test
}  // namespace batchfs::reader
