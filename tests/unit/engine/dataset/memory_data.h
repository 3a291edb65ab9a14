#pragma once
// Datasets without files: arrays of Zarr format 2 in memory, with values given in the test.

#include <concepts>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "engine/dataset/dataset.h"

namespace batchfs {

/// Objects by key; other keys are missing.
class MemoryObjects : public Store {
 public:
  std::string url() const override { return "memory"; }
  bool local = true;
  bool is_local() const override { return local; }
  std::optional<Buffer> read(const std::string& key, ByteRange range) override {
    const auto it = objects.find(key);
    if (it == objects.end()) return std::nullopt;
    const std::string& all = it->second;
    if (range.from_end)
      range.offset = all.size() - std::min<std::uint64_t>(range.length, all.size());
    const std::uint64_t begin = std::min<std::uint64_t>(range.offset, all.size());
    Buffer bytes(std::min<std::uint64_t>(range.length, all.size() - begin));
    if (bytes.size() > 0) std::memcpy(bytes.data(), all.data() + begin, bytes.size());
    return bytes;
  }
  std::optional<PartRead> read_into(const std::string& key, std::uint64_t offset,
                                    std::span<std::byte> out) override {
    const auto bytes = read(key, {offset, out.size()});
    if (!bytes) return std::nullopt;
    if (bytes->size() > 0) std::memcpy(out.data(), bytes->data(), bytes->size());
    return PartRead{bytes->size(), objects.at(key).size()};
  }
  std::optional<std::uint64_t> size(const std::string& key) override {
    const auto it = objects.find(key);
    return it == objects.end() ? std::nullopt : std::optional<std::uint64_t>(it->second.size());
  }
  std::vector<Entry> list(const std::string&) override { return {}; }

  std::map<std::string, std::string> objects;
};

using Shape = std::vector<std::int64_t>;
using Names = std::vector<std::string>;

class MemoryData {
 public:
  MemoryData() {
    hierarchy.groups[""] = {};
    hierarchy.snapshot_id = "snapshot";
  }

  /// An array without chunks: all of it is the fill value. Costs nothing, however large.
  MemoryData& declare(const std::string& path, const std::string& dtype, const Names& dims,
                      const Shape& shape, const Shape& chunks,
                      const Json& attributes = Json::object(), const Json& fill = nullptr) {
    Json all = attributes;
    if (!dims.empty() || shape.empty()) all["_ARRAY_DIMENSIONS"] = dims;
    const Json zarray = {
        {"zarr_format", 2},   {"shape", shape},        {"chunks", chunks},
        {"dtype", dtype},     {"compressor", nullptr}, {"order", "C"},
        {"filters", nullptr}, {"fill_value", fill},    {"dimension_separator", "."}};
    hierarchy.arrays[path] = parse_array_v2(path, zarray, all, path);
    return *this;
  }

  /// An array of one chunk with these values, C order.
  template <class T>
  MemoryData& add(const std::string& path, const std::string& dtype, const Names& dims,
                  const Shape& shape, const std::vector<T>& values,
                  const Json& attributes = Json::object(), const Json& fill = nullptr) {
    Shape chunks = shape;
    std::string key = path + (path.empty() ? "0" : "/0");
    for (std::int64_t& n : chunks) n = std::max<std::int64_t>(n, 1);
    for (std::size_t d = 1; d < shape.size(); ++d) key += ".0";
    declare(path, dtype, dims, shape, chunks, attributes, fill);
    store->objects[key] =
        std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    return *this;
  }

  /// A coordinate: a one-dimensional array of its dimension's name.
  template <class T>
  MemoryData& index(const std::string& dim, const std::string& dtype, const std::vector<T>& values,
                    const Json& attributes = Json::object()) {
    return add(dim, dtype, {dim}, {static_cast<std::int64_t>(values.size())}, values, attributes);
  }

  std::shared_ptr<const Dataset> dataset() const {
    return std::make_shared<const Dataset>(store, hierarchy);
  }

  std::shared_ptr<MemoryObjects> store = std::make_shared<MemoryObjects>();
  Hierarchy hierarchy;
};

/// 0, 1, 2, ... count - 1.
template <class T>
std::vector<T> counting(std::int64_t count) {
  std::vector<T> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), T{});
  return values;
}

/// The values of an array in memory.
template <class T>
std::vector<T> values_of(const NdArray& array) {
  std::vector<T> values(array.data.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), array.data.data(), array.data.size());
  return values;
}

/// The Error that `run` throws; fails the test if it throws none.
template <std::invocable Run>
Error error_of(Run&& run) {
  try {
    run();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::internal, "nothing was thrown");
}

}  // namespace batchfs
