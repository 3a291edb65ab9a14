// Programs of whole epochs, run on the host by the kernels' own code, against the engine's batches.

#include "gpu/program/program_source.h"

#include <random>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/pipeline/engine.h"
#include "engine/view/tensors/tensor_set.h"
#include "tests/unit/engine/pipeline/raw_format.h"
#include "tests/unit/engine/view/wrong_view.h"
#include "tests/unit/gpu/coded_data.h"

namespace batchfs::gpu {
namespace program_source_test {

const RawTestFormat kRaw;

class RemoteStore final : public Store {
 public:
  explicit RemoteStore(std::shared_ptr<MemoryObjects> store) : store_(std::move(store)) {}
  std::string url() const override { return "remote"; }
  std::optional<Buffer> read(const std::string& key, ByteRange range) override {
    auto bytes = store_->read(key, range);
    if (bytes) given += bytes->size();
    return bytes;
  }
  std::optional<PartRead> read_into(const std::string& key, std::uint64_t offset,
                                    std::span<std::byte> out) override {
    return store_->read_into(key, offset, out);
  }
  std::optional<std::uint64_t> size(const std::string& key) override { return store_->size(key); }
  std::vector<Entry> list(const std::string&) override { return {}; }

  std::atomic<std::uint64_t> given{0};  // bytes

 private:
  std::shared_ptr<MemoryObjects> store_;
};

/// A chunk whose bytes change once its size is known.
class ChangingStore final : public Store {
 public:
  ChangingStore(std::shared_ptr<MemoryObjects> store, std::string key, std::string later)
      : store_(std::move(store)), key_(std::move(key)), later_(std::move(later)) {}
  std::string url() const override { return "changing"; }
  bool is_local() const override { return true; }
  std::optional<Buffer> read(const std::string& key, ByteRange range) override {
    return store_->read(key, range);
  }
  std::optional<PartRead> read_into(const std::string& key, std::uint64_t offset,
                                    std::span<std::byte> out) override {
    return store_->read_into(key, offset, out);
  }
  std::optional<std::uint64_t> size(const std::string& key) override {
    const auto size = store_->size(key);
    if (key == key_) store_->objects[key] = later_;
    return size;
  }
  std::vector<Entry> list(const std::string&) override { return {}; }

 private:
  std::shared_ptr<MemoryObjects> store_;
  const std::string key_, later_;
};

/// An object that is not there when it is looked at first.
class AppearingStore final : public Store {
 public:
  AppearingStore(std::shared_ptr<MemoryObjects> store, std::string key)
      : store_(std::move(store)), key_(std::move(key)) {}
  std::string url() const override { return "appearing"; }
  bool is_local() const override { return true; }
  std::optional<Buffer> read(const std::string& key, ByteRange range) override {
    if (!appeared(key)) return std::nullopt;
    return store_->read(key, range);
  }
  std::optional<PartRead> read_into(const std::string& key, std::uint64_t offset,
                                    std::span<std::byte> out) override {
    if (!appeared(key)) return std::nullopt;
    return store_->read_into(key, offset, out);
  }
  std::optional<std::uint64_t> size(const std::string& key) override {
    if (!appeared(key)) return std::nullopt;
    return store_->size(key);
  }
  std::vector<Entry> list(const std::string&) override { return {}; }

 private:
  bool appeared(const std::string& key) {
    return key != key_ || std::exchange(was_looked_at_, true);
  }

  std::shared_ptr<MemoryObjects> store_;
  const std::string key_;
  bool was_looked_at_ = false;
};

struct Epoch {
  std::vector<std::vector<std::byte>> batches;  // tensors one after the other, as the format "raw"
  std::vector<std::string> failed;
  ProgramCounters counters;
  Counters all;
};

std::uint64_t stored_bytes(const MemoryData& data) {
  std::uint64_t sum = 0;
  for (const auto& [key, bytes] : data.store->objects) sum += bytes.size();
  return sum;
}

AreaSizes sizes_for(std::uint64_t part, std::uint64_t target, std::uint64_t batch) {
  AreaSizes sizes;
  sizes.staging = 3 * part;
  sizes.source = part + 4096;
  sizes.planes = sizes.literals = part;
  sizes.runs = part / 2;
  sizes.run_index = part;
  sizes.target = target;
  sizes.batch = batch;
  return sizes;
}

std::uint64_t bytes_of(const View& view, const Dims& shape, std::size_t tensor) {
  return static_cast<std::uint64_t>(element_count(shape)) * view.tensors()[tensor].type.itemsize;
}

/// Runs all batches of an epoch.
void run(const std::shared_ptr<const View>& view, std::uint64_t part, std::uint64_t target,
         Epoch& result, const std::function<void(Program&)>& change = {}) {
  const AssemblyTables tables(*view);
  std::uint64_t largest = 0;
  std::vector<std::vector<std::uint64_t>> tensors;
  for (std::int64_t b = 0; b < view->batches(); ++b) {
    auto& offsets = tensors.emplace_back();
    std::uint64_t at = 0;
    const auto shapes = view->shapes(b);
    for (std::size_t t = 0; t < shapes.size(); ++t) {
      offsets.push_back(at);
      at += bytes_of(*view, shapes[t], t);
    }
    largest = std::max(largest, at);
  }
  AreaSizes sizes = sizes_for(part, target, largest);
  sizes.constants = tables.constants().size();
  check_conversions(tables.conversions(), sizes.constants);
  HostRunner runner(sizes, tables.conversions(), tables.constants());
  Executor executor(2);
  ProgramSource source(
      view, tables,
      [&](std::uint64_t place) {
        return static_cast<std::int64_t>(place) < view->batches()
                   ? std::optional(BatchNumber{0, static_cast<std::int64_t>(place)})
                   : std::nullopt;
      },
      {.sizes = sizes, .staging = runner.staging(), .part = part, .counters = &result.all},
      executor, result.counters);
  result.batches.resize(static_cast<std::size_t>(view->batches()));
  result.failed.resize(result.batches.size());
  // One slot: each batch waits for the previous one, and continues to plan its own next programs.
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t done = 0;
  std::thread runs([&] {
    while (const auto program = source.next()) {
      Program copy = *program;
      if (change) change(copy);
      const auto statuses = runner.run(copy);
      if (const auto end = source.ended(program->header().number, statuses)) {
        const std::uint64_t size =
            tensors[end->place].back() +
            bytes_of(*view, view->shapes(static_cast<std::int64_t>(end->place)).back(),
                     tensors[end->place].size() - 1);
        result.batches[end->place].assign(runner.batch(), runner.batch() + size);
        result.failed[end->place] = end->why_failed;
        const std::lock_guard lock(mutex);
        done = end->place + 1;
        changed.notify_all();
      }
    }
  });
  for (std::uint64_t b = 0; b < result.batches.size(); ++b) {
    ASSERT_TRUE(source.begin(b, 0, tensors[b]));
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(60), [&] { return done > b; }));
  }
  source.stop();
  runs.join();
}

void expect_engines_batches(const std::shared_ptr<const View>& view, const Epoch& result) {
  Log log;
  Engine engine({.threads = 1, .memory = 256 << 20, .prefetch = false}, log);
  for (std::int64_t b = 0; b < view->batches(); ++b) {
    const auto i = static_cast<std::size_t>(b);
    EXPECT_EQ(result.failed[i], "") << b;
    const auto expected = engine.open(BatchRequest{view, &kRaw, 0, b});
    std::uint64_t at = 0;
    for (const MemoryFile& file : expected->files) {
      ASSERT_LE(at + file.size(), result.batches[i].size());
      EXPECT_EQ(std::memcmp(result.batches[i].data() + at, file.data(), file.size()), 0)
          << "batch " << b;
      at += file.size();
    }
  }
}

TEST(ProgramSource, BatchesAreTheEnginesAndEachChunkIsDecodedOnce) {
  const MemoryData data = coded_data(41, 1, 40, 100);
  const auto view = View::parse(data.dataset(), kPairs, "v", "test");
  Epoch result;
  run(view, 128 << 10, 2 << 20, result);
  expect_engines_batches(view, result);
  // 41 steps less the missing ones, of each variable.
  EXPECT_EQ(result.counters.chunks_on_gpu, 6 * 35u);
  EXPECT_EQ(result.counters.chunks_on_cpu, 35u);
  EXPECT_EQ(result.counters.chunks_refused, 0u);
  EXPECT_GT(result.counters.chunks_shared, 40u);
  EXPECT_EQ(result.all.chunk_cache_hits, result.counters.chunks_shared);
  EXPECT_EQ(result.all.chunks_fetched, 7 * 35u);
  EXPECT_EQ(result.all.chunks_decoded, 7 * 35u);
  EXPECT_EQ(result.all.bytes_fetched, stored_bytes(data));
  EXPECT_EQ(result.all.bytes_decoded, 7 * 35u * 40 * 100 * 4);
}

TEST(ProgramSource, ABatchWithAWrongPlanFailsAndTheOthersDoNot) {
  const MemoryData data = coded_data(12, 2, 8, 10);
  const std::string json = R"({"window": {"time": 1}, "variables": ["v1"], "batch": 4})";
  // Its second batch would read beyond the array.
  const auto view = wrong_view(data.dataset(), json, [](TensorSet& tensors) {
    AxisPlacement& time = tensors.placements[0].axes[0];
    std::vector<std::int64_t> indices;
    for (std::int64_t i = 0; i < time.selected.size(); ++i)
      indices.push_back(i == 5 ? 1'000'000 : time.selected[i]);
    time.selected = Positions::list(std::move(indices));
  });
  Epoch result;
  run(view, 64 << 10, 1 << 20, result);
  ASSERT_EQ(result.failed.size(), 3u);
  EXPECT_EQ(result.failed[0], "");
  EXPECT_NE(result.failed[1].find("the plan of the batch is wrong in 'v1'"), std::string::npos)
      << result.failed[1];
  EXPECT_EQ(result.failed[2], "");
  const auto right = View::parse(data.dataset(), json, "v", "test");
  Epoch all;
  run(right, 64 << 10, 1 << 20, all);
  EXPECT_EQ(result.batches[0], all.batches[0]);
  EXPECT_EQ(result.batches[2], all.batches[2]);
}

TEST(ProgramSource, RoomForFewChunksIsUsedAgainAndAgain) {
  const MemoryData data = coded_data(30, 4, 40, 50);
  const auto view = View::parse(
      data.dataset(),
      R"({"window": {"time": 1, "x": {"size": 20, "stride": 15, "wrap": true}}, "batch": 16,
      "order": {"shuffle": "global", "seed": 3}, "dtype": "float16"})",
      "v", "test");
  Epoch result;
  run(view, 64 << 10, 150 << 10, result);
  expect_engines_batches(view, result);
}

TEST(ProgramSource, AStaticVariableIsRepeatedAndDecodedOnce) {
  for (const char* coding : {"raw", "zstd"}) {
    MemoryData data = coded_data(20, 2, 20, 30);
    const Json zarray = {{"zarr_format", 2},
                         {"shape", {20, 30}},
                         {"chunks", {20, 30}},
                         {"dtype", ">f4"},
                         {"compressor", compressor_of(coding)},
                         {"order", "C"},
                         {"filters", nullptr},
                         {"fill_value", 1.5},
                         {"dimension_separator", "."}};
    for (const char* name : {"mask", "absent"})
      data.hierarchy.arrays[name] = parse_array_v2(
          name, zarray, {{"_ARRAY_DIMENSIONS", {"y", "x"}}, {"scale_factor", 2.0}}, name);
    const auto values = make_data(Data::packed, 20 * 30 * 4, 7);
    data.store->objects["mask/0.0"] = encoded(coding, std::string(values.begin(), values.end()));
    const auto view = View::parse(data.dataset(), R"({
      "window": {"time": {"size": 3, "stride": 2, "edge": "pad"}, "x": {"size": 20, "stride": 15, "wrap": true}},
      "batch": 4, "dtype": "float32",
      "normalize": {"method": "zscore", "statistics": {
          "mask": {"dims": ["y"], "mean": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
                   "std": [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5]}},
          "variables": ["mask"]},
      "tensors": {"x": {"variables": ["v2", "mask", "absent"], "stack": "channel", "broadcast": true,
                        "offsets": {"time": [0, 1]}},
                  "y": {"variables": ["mask"], "broadcast": true, "dims": ["y", "time", "x"]}}})",
                                  "v", "test");
    Epoch result;
    run(view, 64 << 10, 1 << 20, result);
    expect_engines_batches(view, result);
    EXPECT_EQ(result.counters.chunks_on_gpu, 9 + 1u) << "those of v2 that are there, and the mask";
  }
}

TEST(ProgramSource, ChannelsOfTimesAndPlacesAreComputedByTheHost) {
  MemoryData data = coded_data(20, 2, 20, 30);
  std::vector<double> hours(20), latitudes(20), longitudes(30);
  for (std::size_t i = 0; i < 20; ++i) hours[i] = 6.0 * static_cast<double>(i);
  for (std::size_t i = 0; i < 20; ++i) latitudes[i] = 80.0 - 8.0 * static_cast<double>(i);
  for (std::size_t i = 0; i < 30; ++i) longitudes[i] = 12.0 * static_cast<double>(i);
  data.index("time", "<f8", hours, {{"units", "hours since 2001-03-02"}})
      .index("y", "<f8", latitudes, {{"units", "degrees_north"}})
      .index("x", "<f8", longitudes, {{"units", "degrees_east"}});
  for (const char* dtype : {"float32", "float64", "bfloat16"}) {
    const auto view = View::parse(data.dataset(),
                                  fmt::format(R"({{
      "window": {{"time": {{"size": 3, "stride": 2, "edge": "pad"}}, "x": {{"size": 20, "stride": 15, "wrap": true}}}},
      "batch": 4, "dtype": "{}", "order": {{"shuffle": "global"}},
      "normalize": {{"method": "zscore", "statistics": {{"cos_zenith": {{"mean": 0.25, "std": 0.5}}}},
                    "variables": ["cos_zenith"]}},
      "tensors": {{"x": {{"variables": ["v2", {{"make": "cos_zenith"}}, {{"make": "sin_julian_day"}},
                                     {{"make": "cos_latitude"}}, {{"make": "constant", "value": 0.1, "name": "c"}}],
                        "stack": "channel", "offsets": {{"time": [0, 1]}}}},
                  "y": {{"variables": [{{"make": "cos_zenith"}}], "dims": ["x", "y", "time"]}}}}}})",
                                              dtype),
                                  "v", "test");
    // Little room: a batch has several programs.
    Epoch result;
    run(view, 64 << 10, 200 << 10, result);
    for (const std::string& failed : result.failed) EXPECT_EQ(failed, "");
    expect_engines_batches(view, result);
    EXPECT_EQ(result.counters.chunks_on_cpu, 0u);
  }
}

TEST(ProgramSource, RemoteStoresAreFetchedAhead) {
  MemoryData data = coded_data(20, 2, 20, 30);
  const auto store = std::make_shared<RemoteStore>(data.store);
  const auto dataset = std::make_shared<const Dataset>(store, data.hierarchy);
  const auto view = View::parse(dataset, kPairs, "v", "test");
  Epoch result;
  run(view, 64 << 10, 1 << 20, result);
  EXPECT_GE(store->given, stored_bytes(data));
  EXPECT_EQ(result.all.bytes_fetched, store->given);
  expect_engines_batches(view, result);
}

TEST(ProgramSource, ChunksLargerThanAPartFailTheirBatchesOnly) {
  const MemoryData data = coded_data(8, 4, 100, 100);
  const auto view = View::parse(
      data.dataset(), R"({"variables": ["v2"], "window": {"time": 1}, "batch": 4})", "v", "test");
  Epoch result;
  run(view, 64 << 10, 2 << 20, result);
  for (const std::string& why : result.failed)
    EXPECT_NE(why.find("larger"), std::string::npos) << why;
}

TEST(ProgramSource, WhatTheFirstChunkTellsOfAVariableFailsNoBatch) {
  MemoryData data;
  const Json zarray = {{"zarr_format", 2},
                       {"shape", {24, 20, 30}},
                       {"chunks", {2, 20, 30}},
                       {"dtype", "<f4"},
                       {"compressor", compressor_of("blosc-blosclz")},
                       {"order", "C"},
                       {"filters", nullptr},
                       {"fill_value", nullptr},
                       {"dimension_separator", "."}};
  data.hierarchy.arrays["v1"] =
      parse_array_v2("v1", zarray, {{"_ARRAY_DIMENSIONS", {"time", "y", "x"}}}, "v1");
  for (unsigned t = 1; t < 12; ++t) {  // the first is missing
    const auto values = make_data(Data::packed, 2 * 20 * 30 * 4, t);
    data.store->objects["v1/" + std::to_string(t) + ".0.0"] =
        encoded("blosc-blosclz", std::string(values.begin(), values.end()));
  }
  for (const bool local : {true, false}) {
    const std::shared_ptr<Store> remote = std::make_shared<RemoteStore>(data.store);
    const auto dataset =
        local ? data.dataset() : std::make_shared<const Dataset>(remote, data.hierarchy);
    const auto view = View::parse(dataset, R"({"window": {"time": 1}, "batch": 4})", "v", "test");
    Epoch result;
    run(view, 64 << 10, 1 << 20, result);
    expect_engines_batches(view, result);
    EXPECT_EQ(result.counters.chunks_refused, 0u);
    EXPECT_EQ(result.counters.chunks_on_cpu, 11u);
  }
}

TEST(ProgramSource, DamagedChunksFailTheirBatchesOnly) {
  MemoryData data = coded_data(16, 1, 40, 100);
  for (const char* key : {"v2/3.0.0", "v3/3.0.0", "v4/9.0.0", "v5/9.0.0"})
    data.store->objects[key].resize(900);
  std::string& flipped = data.store->objects["v2/14.0.0"];
  for (std::size_t i = flipped.size() / 2; i < flipped.size() / 2 + 40; ++i)
    flipped[i] = static_cast<char>(~flipped[i]);
  const auto view =
      View::parse(data.dataset(), R"({"window": {"time": 1}, "batch": 2})", "v", "test");
  Epoch result;
  run(view, 128 << 10, 4 << 20, result);
  for (std::size_t b = 0; b < result.failed.size(); ++b)
    EXPECT_EQ(result.failed[b].empty(), b != 1 && b != 4 && b != 7) << b << " " << result.failed[b];
  EXPECT_NE(result.failed[1].find("/3.0.0"), std::string::npos) << result.failed[1];
  EXPECT_NE(result.failed[7].find("v2/14.0.0"), std::string::npos) << result.failed[7];
}

TEST(ProgramSource, AChunkThatChangesBetweenItsSizeAndItsBytesFailsItsBatch) {
  for (const bool grows : {false, true})
    for (const char* name : {"v1", "v3"}) {  // copied unchanged; decoded
      MemoryData data = coded_data(8, 2, 20, 30);
      const std::string key = std::string(name) + "/1.0.0", before = data.store->objects.at(key);
      const std::string later = grows ? before + "more" : before.substr(0, before.size() - 4);
      const auto store = std::make_shared<ChangingStore>(data.store, key, later);
      const auto dataset = std::make_shared<const Dataset>(store, data.hierarchy);
      const auto view = View::parse(
          dataset,
          std::string(R"({"variables": [")") + name + R"("], "window": {"time": 1}, "batch": 2})",
          "v", "test");
      Epoch result;
      run(view, 64 << 10, 1 << 20, result);
      for (std::size_t b = 0; b < result.failed.size(); ++b)
        EXPECT_EQ(result.failed[b].find("changed while it was read") != std::string::npos, b == 1)
            << name << b << result.failed[b];
    }
}

TEST(ProgramSource, AShardThatAppearsInTheMiddleOfABatchFailsIt) {
  const Json little = {{"name", "bytes"}, {"configuration", {{"endian", "little"}}}};
  const Json document = {
      {"zarr_format", 3},
      {"node_type", "array"},
      {"shape", {8, 16}},
      {"data_type", "int32"},
      {"fill_value", -1},
      {"dimension_names", {"time", "x"}},
      {"chunk_grid", {{"name", "regular"}, {"configuration", {{"chunk_shape", {4, 16}}}}}},
      {"chunk_key_encoding", {{"name", "default"}}},
      {"codecs", Json::array({{{"name", "sharding_indexed"},
                               {"configuration",
                                {{"chunk_shape", {1, 16}},
                                 {"codecs", Json::array({little})},
                                 {"index_location", "start"},
                                 {"index_codecs", Json::array({little})}}}}})}};
  std::string shard;
  for (std::uint64_t k = 0; k < 4; ++k)
    for (const std::uint64_t word : {64 + k * 64, UINT64_C(64)})
      shard.append(reinterpret_cast<const char*>(&word), sizeof word);
  for (std::int32_t value = 0; value < 64; ++value)
    shard.append(reinterpret_cast<const char*>(&value), sizeof value);
  for (const std::string appears : {"", "a/c/0/0", "a/c/1/0"}) {
    MemoryData data;
    data.hierarchy.groups[""] = {};
    data.hierarchy.arrays["a"] = parse_array_v3("a", document, "a/zarr.json");
    data.store->objects["a/zarr.json"] = document.dump();
    for (const char* key : {"a/c/0/0", "a/c/1/0"}) data.store->objects[key] = shard;
    const auto store = std::make_shared<AppearingStore>(data.store, appears);
    const auto view =
        View::parse(std::make_shared<const Dataset>(store, data.hierarchy),
                    R"({"variables": ["a"], "window": {"time": 1}, "batch": 4})", "v", "test");
    Epoch result;
    run(view, 64 << 10, 1 << 20, result);
    ASSERT_EQ(result.failed.size(), 2u);
    for (std::size_t b = 0; b < 2; ++b) {
      const bool is_mixed = appears == (b == 0 ? "a/c/0/0" : "a/c/1/0");
      EXPECT_EQ(result.failed[b].find("a shard appeared") != std::string::npos, is_mixed)
          << appears << " " << b << result.failed[b];
    }
  }
}

TEST(ProgramSource, ADamagedProgramIsRefusedOrStaysInsideOfItsAreas) {
  const MemoryData data = coded_data(6, 1, 20, 30);
  const auto view = View::parse(data.dataset(), kPairs, "v", "test");
  std::mt19937 random(5);
  int refused = 0, ran = 0;
  for (int round = 0; round < 30; ++round) {
    Epoch result;
    const AssemblyTables tables(*view);
    run(view, 64 << 10, 1 << 20, result, [&](Program& program) {
      const AreaSizes sizes = [&] {
        AreaSizes s = sizes_for(64 << 10, 1 << 20, 1 << 20);
        s.constants = tables.constants().size();
        return s;
      }();
      HostRunner other(sizes, tables.conversions(), tables.constants());
      for (int flips = 0; flips < 20; ++flips) {
        std::vector<std::byte> bytes(program.bytes().begin(), program.bytes().end());
        for (int i = 0; i < 1 + flips % 3; ++i)
          bytes[random() % bytes.size()] ^= static_cast<std::byte>(1u << random() % 8);
        try {
          other.run(Program(std::move(bytes)));
          ++ran;
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::corrupt);
          ++refused;
        }
      }
    });
  }
  EXPECT_GT(refused, 50);
  EXPECT_GT(ran, 50);
}

}  // namespace program_source_test
}  // namespace batchfs::gpu
