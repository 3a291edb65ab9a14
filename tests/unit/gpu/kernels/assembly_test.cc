// The assembly kernel, run on the host, against the engine's own assembly, over views made at
// random.

#include "gpu/kernels/assembly.cuh"

#include <filesystem>
#include <fstream>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/pipeline/engine.h"
#include "engine/view/mixed_view.h"
#include "gpu/program/assembly_plan.h"
#include "tests/unit/engine/dataset/memory_data.h"
#include "tests/unit/engine/pipeline/raw_format.h"

namespace batchfs::gpu {
namespace assembly_test {

const RawTestFormat kRaw;

/// A dataset of arrays with any bits in them, some chunks missing.
class RandomData {
 public:
  explicit RandomData(std::mt19937& random) : random_(random) {}

  void add(const std::string& name, const std::string& dtype, const Names& dims, const Shape& shape,
           const Shape& chunks, const Json& attributes, const Json& fill) {
    const bool fortran = random_() % 3 == 0;
    Json all = attributes;
    all["_ARRAY_DIMENSIONS"] = dims;
    const Json zarray = {
        {"zarr_format", 2},   {"shape", shape},        {"chunks", chunks},
        {"dtype", dtype},     {"compressor", nullptr}, {"order", fortran ? "F" : "C"},
        {"filters", nullptr}, {"fill_value", fill},    {"dimension_separator", "."}};
    data.hierarchy.arrays[name] = parse_array_v2(name, zarray, all, name);
    std::size_t chunk_bytes = static_cast<std::size_t>(dtype.back() - '0');
    for (const std::int64_t n : chunks) chunk_bytes *= static_cast<std::size_t>(n);
    Shape at(shape.size());
    for (;;) {
      std::string key = name + "/";
      for (std::size_t d = 0; d < at.size(); ++d) key += (d > 0 ? "." : "") + std::to_string(at[d]);
      if (random_() % 8 != 0) data.store->objects[key] = noise(chunk_bytes);
      std::size_t d = at.size();
      while (d > 0 && (at[d - 1] + 1) * chunks[d - 1] >= shape[d - 1]) at[--d] = 0;
      if (d == 0) return;
      ++at[d - 1];
    }
  }

  MemoryData data;

 private:
  /// Any bits, now and then a whole byte of ones, which makes floats NaN.
  std::string noise(std::size_t size) {
    std::string bytes(size, 0);
    for (char& b : bytes) b = static_cast<char>(random_() % 5 == 0 ? 0xff : random_() % 256);
    return bytes;
  }

  std::mt19937& random_;
};

/// The tensors of a batch, assembled by the kernel from stored chunks.
std::vector<std::vector<std::byte>> gathered(const View& view, const AssemblyTables& tables,
                                             const MemoryObjects& store, std::int64_t epoch,
                                             std::int64_t batch) {
  const BatchPlan plan = view.plan(epoch, batch);
  std::vector<std::uint64_t> begins, sizes;
  std::uint64_t total = 0;
  for (std::size_t t = 0; t < plan.shapes.size(); ++t) {
    begins.push_back(total);
    sizes.push_back(static_cast<std::uint64_t>(element_count(plan.shapes[t])) *
                    view.tensors()[t].type.itemsize);
    total += (sizes.back() + 255) / 256 * 256;
  }
  std::vector<std::uint8_t> chunks;
  std::vector<GpuCodecSupport> codings;
  for (const Variable* variable : view.variables())
    codings.push_back(gpu_codec_support(*variable->array));
  GatherPlan gathers;
  for (const ChunkUse& use : plan.chunks) {
    const Array& array = *view.variables()[use.variable]->array;
    std::string key = array.metadata().path + "/" +
                      array.metadata().key_encoding.key(array.grid().chunk(use.chunk));
    const auto object = store.objects.find(key);
    EXPECT_EQ(codings[use.variable].kind, GpuCodecSupport::Kind::raw);
    DecodedPlace place{(chunks.size() + 255) / 256 * 256, &codings[use.variable].form};
    if (object != store.objects.end()) {
      chunks.resize(place.offset);
      chunks.insert(chunks.end(), object->second.begin(), object->second.end());
    }
    add_use(gathers, view, tables, plan, use, object == store.objects.end() ? nullptr : &place,
            begins);
  }
  add_paddings(gathers, tables, plan, begins);
  add_given(gathers, view, tables, plan, begins);
  std::vector<std::uint64_t> memory(total / 8 + 1, 0xcdcdcdcdcdcdcdcd);
  AssemblyWork work;
  work.chunks = chunks.data();
  work.constants = reinterpret_cast<const std::uint8_t*>(tables.constants().data());
  work.batch = reinterpret_cast<std::uint8_t*>(memory.data());
  work.conversions = tables.conversions().data();
  work.gathers = gathers.gathers().data();
  work.gather_count = static_cast<std::uint32_t>(gathers.gathers().size());
  for (std::uint32_t slice = 0; slice < gathers.slices(); ++slice) gather_slice<64>(work, slice);
  std::vector<std::vector<std::byte>> tensors;
  const auto* bytes = reinterpret_cast<const std::byte*>(memory.data());
  for (std::size_t t = 0; t < begins.size(); ++t)
    tensors.emplace_back(bytes + begins[t], bytes + begins[t] + sizes[t]);
  return tensors;
}

std::string hex(const std::byte* at, std::size_t size) {
  std::string text;
  for (std::size_t i = size; i-- > 0;) text += fmt::format("{:02x}", static_cast<unsigned>(at[i]));
  return text;
}

/// Compares the view's first batch, its last, and some between. Returns their number. Batches of a
/// view differ in the places of their windows.
int compare(const MemoryData& data, const std::shared_ptr<const View>& view,
            const std::string& json) {
  Log log;
  Engine engine({.threads = 1, .memory = 64 << 20, .prefetch = false}, log);
  const AssemblyTables tables(*view);
  constexpr std::int64_t kMaxChecked = 12;
  const std::int64_t last = view->batches() - 1, count = std::min(view->batches(), kMaxChecked);
  for (std::int64_t n = 0; n < count; ++n) {
    const std::int64_t b = count == 1 ? 0 : last * n / (count - 1);
    const auto expected = engine.open(BatchRequest{view, &kRaw, 0, b});
    const auto got = gathered(*view, tables, *data.store, 0, b);
    for (std::size_t t = 0; t < got.size(); ++t) {
      const std::size_t item = view->tensors()[t].type.itemsize;
      EXPECT_EQ(got[t].size(), expected->files[t].size());
      for (std::size_t i = 0; i < got[t].size(); i += item)
        if (std::memcmp(got[t].data() + i, expected->files[t].data() + i, item) != 0) {
          ADD_FAILURE() << "batch " << b << " tensor " << t << " element " << i / item << ": "
                        << hex(got[t].data() + i, item) << ", expected "
                        << hex(expected->files[t].data() + i, item) << " " << json;
          return 0;
        }
    }
  }
  return static_cast<int>(count);
}

int compare(const MemoryData& data, const std::string& json, const ViewOptions& options = {}) {
  return compare(data, View::parse(data.dataset(), json, "v", "test", options), json);
}

const char* const kTypes[] = {"|i1", "<i2", ">i2", "<i4", ">i4", "<i8", ">i8", "|u1", "<u2",
                              ">u2", "<u4", "<u8", "<f2", ">f2", "<f4", ">f4", "<f8", ">f8"};

TEST(Assembly, RandomViewsGiveTheEnginesBytes) {
  int batches = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    std::mt19937 random(seed);
    const auto up_to = [&](std::int64_t n) {
      return static_cast<std::int64_t>(random() % static_cast<unsigned>(n));
    };
    const auto maybe = [&] { return random() % 2 == 0; };
    RandomData made(random);
    const Shape shape{5 + up_to(8), 1 + up_to(3), 4 + up_to(30), 4 + up_to(40)};
    const Shape chunks{1 + up_to(4), 1 + up_to(shape[1]), 1 + up_to(shape[2]), 1 + up_to(shape[3])};
    Json tensor_variables = Json::array(), statistics = Json::object();
    const std::string type = kTypes[random() % std::size(kTypes)];
    const bool is_float = type[1] == 'f';
    bool decodes_to_float = is_float;
    Json attributes = Json::object();
    if (maybe()) {
      if (maybe() || !is_float) attributes["scale_factor"] = maybe() ? 0.01 : 1e-3;
      if (maybe() || !is_float) attributes["add_offset"] = maybe() ? 273.15 : -4.0;
      decodes_to_float = true;
    }
    if (decodes_to_float && maybe()) attributes["missing_value"] = type[1] == 'u' ? 7 : -1;
    const Json fill = maybe() ? Json(3) : Json(nullptr);
    if (!fill.is_null()) decodes_to_float = true;  // xarray takes it for missing
    for (const char* name : {"a", "b"}) {
      made.add(name, type, {"time", "level", "y", "x"}, shape, chunks, attributes, fill);
      tensor_variables.push_back(name);
      Json means = 0.5, stds = 1.7;
      Json row = {{"mean", means}, {"std", stds}};
      if (maybe()) {
        means = Json::array();
        stds = Json::array();
        for (std::int64_t i = 0; i < shape[1]; ++i) {
          means.push_back(0.1 * static_cast<double>(i + 1));
          stds.push_back(1.3 + static_cast<double>(i));
        }
        row = {{"dims", {"level"}}, {"mean", means}, {"std", stds}};
      }
      statistics[name] = row;
    }
    Json view = {{"window", {{"time", 1}}}, {"batch", 1 + up_to(4)}};
    if (maybe()) view["window"]["y"] = {{"size", 2 + up_to(2)}, {"stride", 1 + up_to(3)}};
    if (maybe())
      view["window"]["x"] = {{"size", 3 + up_to(2)}, {"stride", 2 + up_to(5)}, {"wrap", true}};
    if (maybe()) view["order"] = {{"shuffle", "global"}, {"seed", 4}};
    if (maybe())
      view["tensors"] = {{"x", {{"variables", tensor_variables}, {"stack", "channel"}}},
                         {"y", {{"variables", {"a"}}, {"offsets", {{"time", {1, 2}}}}}}};
    if (decodes_to_float && random() % 3 != 0)
      view["dtype"] = std::array{"float32", "float16", "bfloat16", "float64"}[random() % 4];
    if (maybe())
      view["normalize"] = {
          {"method", "zscore"}, {"statistics", statistics}, {"variables", tensor_variables}};
    if (decodes_to_float && random() % 3 == 0)
      view["missing"] = {{"nan", "fill"}, {"value", -9.25}};
    if (decodes_to_float && view["window"].contains("y") && maybe())
      view["window"]["y"]["edge"] = "pad";
    if (view.contains("dtype") && view["dtype"] == "bfloat16") view["formats"] = {"safetensors"};
    try {
      batches += compare(made.data, view.dump());
    } catch (const Error& error) {
      ADD_FAILURE() << seed << ": " << error.what() << " " << view.dump();
    }
    if (HasFailure()) {
      FAIL() << "seed " << seed << " type " << type << " " << attributes.dump();
    }
  }
  EXPECT_GT(batches, 1000);
}

TEST(Assembly, MixturesAreTheEngines) {
  std::mt19937 random(5);
  RandomData made(random);
  for (const char* name : {"a", "b"})
    made.add(name, "<i2", {"time", "y"}, {23, 9}, {5, 4}, {{"scale_factor", 0.01}}, nullptr);
  const auto dataset = made.data.dataset();
  for (const char* mixing : {"sample", "stratified", "batch"}) {
    const MixSpec spec =
        parse_mix_spec(fmt::format(R"({{"mix": {{"one": {{"view": "1"}}, "two": {{"view": "2"}}}},
                        "batch": {{"size": 6, "mixing": "{}"}}, "formats": ["safetensors"]}})",
                                   mixing),
                       "m", "f");
    const ViewOptions options{.mixed = MixedIn{spec.view.batch_size, spec.view.formats}};
    const std::string one =
        R"({"window": {"time": 2, "y": {"size": 3, "edge": "pad"}}, "dtype": "bfloat16",
                                "tensors": {"x": {"variables": ["a", "b"], "stack": "c"}})";
    const auto view = make_mixed_view(
        spec,
        {View::parse(dataset, one + R"(, "order": {"shuffle": "global"}})", "1", "1", options),
         View::parse(dataset, one + R"(, "normalize": {"method": "zscore", "statistics": {
                               "a": {"mean": 0.5, "std": 1.7}, "b": {"mean": -3, "std": 0.1}}}})",
                     "2", "2", options)});
    EXPECT_GT(compare(made.data, view, mixing), 5);
  }
}

TEST(Assembly, LabelsOfListedSamplesAreTheEngines) {
  std::mt19937 random(3);
  RandomData made(random);
  made.add("a", "<f4", {"time", "y"}, {12, 9}, {5, 4}, Json::object(), nullptr);
  const std::string path = testing::TempDir() + "assembly_test_rows.csv";
  std::ofstream file(path);
  file << "time,y,kind,rain\n";
  for (int row = 0; row < 23; ++row)
    file << "#" << random() % 12 << ",#" << random() % 8 << "," << row * 3 - 5 << "," << row * 0.37
         << "\n";
  file.close();
  const ViewOptions options{.file_path = [&](const std::string&) { return path; }};
  for (const char* dtype : {"float64", "float32", "float16", "bfloat16"}) {
    Json view = {{"variables", {"a"}},
                 {"window", {{"time", 1}, {"y", 2}}},
                 {"batch", 4},
                 {"dtype", dtype},
                 {"formats", {"safetensors"}},
                 {"order", {{"shuffle", "block"}}},
                 {"samples", {{"list", "rows.csv"}, {"labels", {"kind", "rain"}}}}};
    EXPECT_EQ(compare(made.data, view.dump(), options), 6);
  }
  std::filesystem::remove(path);
}

}  // namespace assembly_test
}  // namespace batchfs::gpu
