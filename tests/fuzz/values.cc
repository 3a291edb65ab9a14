// Values of every type under attributes of any kind: decoded as stored and as xarray does, written
// as text, and looked up by a label. The first byte selects the type; then come the attributes
// (JSON) and the label, each up to a NUL; the rest is the values.

#include "engine/base/json_text.h"
#include "engine/dataset/labels.h"
#include "engine/dataset/read_variable.h"
#include "engine/dataset/selection.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/engine/dataset/memory_data.h"
#include "tools/cli/value_text.h"

namespace batchfs {
namespace {

constexpr const char* kTypes[] = {R"("|b1")",
                                  R"("|i1")",
                                  R"("<i2")",
                                  R"(">i4")",
                                  R"("<i8")",
                                  R"("|u1")",
                                  R"("<u2")",
                                  R"(">u8")",
                                  R"("<f2")",
                                  R"(">f4")",
                                  R"("<f8")",
                                  R"("<c8")",
                                  R"("<c16")",
                                  R"("|S1")",
                                  R"("|S3")",
                                  R"("<U2")",
                                  R"("|V3")",
                                  R"("<M8[Y]")",
                                  R"("<M8[M]")",
                                  R"("<M8[W]")",
                                  R"("<M8[D]")",
                                  R"("<M8[h]")",
                                  R"("<M8[ns]")",
                                  R"("<M8[as]")",
                                  R"("<M8[25s]")",
                                  R"("<M8")",
                                  R"("<m8[25s]")",
                                  R"("<m8[ns]")",
                                  R"([["a", "<i2"], ["b", ">f4", [2]], ["c", "|S2"]])"};

/// batchfs reads the JSON that it writes.
bool is_json(const std::string& text) {
  return attempt([&] { parse_json(text, "fuzz"); });
}

void write_texts(const NdArray& values) {
  const std::size_t item = values.type.itemsize, count = values.data.size() / item;
  std::string json = "[", people;
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) json += ", ";
    append_value(json, values.type, values.data.data() + i * item, TextStyle::json);
    append_value(people, values.type, values.data.data() + i * item, TextStyle::people);
  }
  must(is_json(json + "]"));
}

}  // namespace
}  // namespace batchfs

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace batchfs;
  static const std::vector<Json> types = [] {
    std::vector<Json> parsed;
    for (const char* type : kTypes) parsed.push_back(parse_json(type, "fuzz"));
    return parsed;
  }();
  Input input(data, size);
  const Json& type = types[input.number<std::uint8_t>() % types.size()];
  const std::string attributes = input.text(), label = input.text();
  const auto rest = input.bytes(1024);
  attempt([&] {
    Json all = parse_json(attributes, ".zattrs");
    if (!all.is_object()) return;
    if (!all.contains("_ARRAY_DIMENSIONS")) all["_ARRAY_DIMENSIONS"] = {"x"};
    Json zarray = {{"zarr_format", 2},   {"shape", {1}},          {"chunks", {1}},
                   {"dtype", type},      {"compressor", nullptr}, {"order", "C"},
                   {"filters", nullptr}, {"fill_value", nullptr}, {"dimension_separator", "."}};
    const std::size_t item = parse_array_v2("x", zarray, all, "x").type.itemsize;
    const auto count = static_cast<std::int64_t>(std::min<std::size_t>(rest.size() / item, 64));
    zarray["shape"] = zarray["chunks"] = {std::max<std::int64_t>(count, 1)};
    MemoryData memory;
    memory.hierarchy.arrays["x"] = parse_array_v2("x", zarray, all, "x");
    // Ignores bytes after the values; the fill value replaces missing ones.
    if (count > 0)
      memory.store->objects["x/0"] = std::string(reinterpret_cast<const char*>(rest.data()),
                                                 static_cast<std::size_t>(count) * item);
    const auto dataset = memory.dataset();
    const Variable& variable = dataset->variable("x");
    const NdArray raw = read_variable(variable, Decode::raw);
    write_texts(raw);
    attempt([&] { write_texts(read_variable(variable, Decode::cf)); });
    attempt([&] {
      const std::int64_t length = dataset->dim_size("x");
      const Positions positions = select(*dataset, "x", parse_selector(label, "x"));
      for (std::int64_t i = 0; i < positions.size(); ++i)
        must(positions[i] >= 0 && positions[i] < length);
    });
    if (dataset->index_of("x") == nullptr) return;
    attempt([&] {
      const NdArray& values = dataset->index_values("x");
      for (std::int64_t i = 0; i < values.shape[0]; ++i) {
        label_text(values, i);
        must(is_json(json_text(label_json(values, i), -1)));
      }
    });
  });
  return 0;
}
