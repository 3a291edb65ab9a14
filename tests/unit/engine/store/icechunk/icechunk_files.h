#pragma once
// Files of Icechunk repositories for tests.

#include <span>
#include <string>
#include <vector>

#include "engine/store/icechunk/object_id.h"
#include "tests/unit/engine/store/icechunk/flat_builder.h"

namespace batchfs {

/// An id of `size` bytes, all `fill`.
inline std::string raw_id(char fill, std::size_t size = 12) { return std::string(size, fill); }
inline icechunk::ObjectId object_id(char fill) {
  icechunk::ObjectId id;
  id.fill(static_cast<std::byte>(fill));
  return id;
}
inline icechunk::NodeId node_id(char fill) {
  icechunk::NodeId id;
  id.fill(static_cast<std::byte>(fill));
  return id;
}

/// A file with its header, uncompressed.
inline std::string ice_file(char type, const std::string& payload, char version = 2,
                            char compression = 0) {
  std::string head =
      "ICE\xf0\x9f\xa7\x8a"
      "CHUNK";
  head += "a test";
  head.resize(36, ' ');
  return head + version + type + compression + payload;
}

inline std::string u32s(const std::vector<std::uint32_t>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * 4);
}

using Fields = FlatBuilder::Fields;

inline Fields array_node(char id, const std::string& path, const std::string& json,
                         const std::vector<Fields>& uses) {
  return {{0, flat_struct(raw_id(id, 8))},
          {1, flat_text(path)},
          {2, flat_text(json)},
          {3, flat_number<std::uint8_t>(1)},
          {4, flat_table({{2, flat_tables(uses)}})}};
}
inline Fields group_node(char id, const std::string& path, const std::string& json) {
  return {{0, flat_struct(raw_id(id, 8))},
          {1, flat_text(path)},
          {2, flat_text(json)},
          {3, flat_number<std::uint8_t>(2)},
          {4, flat_table({})}};
}
/// A manifest, and from and to by dimension.
inline Fields manifest_use(char id, const std::vector<std::uint32_t>& extents) {
  return {{0, flat_struct(raw_id(id))}, {1, flat_vector(u32s(extents), 8)}};
}
inline std::string snapshot_file(char id, const std::vector<Fields>& nodes, Fields more = {}) {
  Fields root{{0, flat_struct(raw_id(id))},
              {2, flat_tables(nodes)},
              {4, flat_text("a message")},
              {3, flat_number<std::uint64_t>(1'700'000'000'000'000)}};
  for (auto& [number, field] : more) root[number] = field;
  return ice_file(1, FlatBuilder::file(root));
}

inline Fields inline_ref(const std::vector<std::uint32_t>& index, const std::string& bytes) {
  return {{0, flat_vector(u32s(index), 4)}, {1, flat_text(bytes)}};
}
inline Fields native_ref(const std::vector<std::uint32_t>& index, char chunk, std::uint64_t offset,
                         std::uint64_t length) {
  return {{0, flat_vector(u32s(index), 4)},
          {2, flat_number(offset)},
          {3, flat_number(length)},
          {4, flat_struct(raw_id(chunk))}};
}
inline Fields file_ref(const std::vector<std::uint32_t>& index, const std::string& location,
                       std::uint64_t offset, std::uint64_t length, std::uint32_t modified = 0) {
  return {{0, flat_vector(u32s(index), 4)},
          {2, flat_number(offset)},
          {3, flat_number(length)},
          {5, flat_text(location)},
          {7, flat_number(modified)}};
}
inline Fields array_refs(char node, const std::vector<Fields>& refs) {
  return {{0, flat_struct(raw_id(node, 8))}, {1, flat_tables(refs)}};
}
inline std::string manifest_file(char id, const std::vector<Fields>& arrays, Fields more = {}) {
  Fields root{{0, flat_struct(raw_id(id))}, {1, flat_tables(arrays)}};
  for (auto& [number, field] : more) root[number] = field;
  return ice_file(2, FlatBuilder::file(root));
}

inline Fields ref_of(const std::string& name, std::uint32_t snapshot) {
  return {{0, flat_text(name)}, {1, flat_number(snapshot)}};
}
inline Fields snapshot_info(char id, std::int32_t parent, std::uint64_t time,
                            const std::string& message = "") {
  return {{0, flat_struct(raw_id(id))},
          {1, flat_number(parent)},
          {2, flat_number(time)},
          {3, flat_text(message)}};
}
inline std::string repo_file(const std::vector<Fields>& branches, const std::vector<Fields>& tags,
                             const std::vector<Fields>& snapshots,
                             const std::vector<std::string>& deleted = {}, Fields more = {}) {
  Fields root{{1, flat_tables(tags)},
              {2, flat_tables(branches)},
              {3, flat_texts(deleted)},
              {4, flat_tables(snapshots)},
              {5, flat_table({})}};
  for (auto& [number, field] : more) root[number] = field;
  return ice_file(6, FlatBuilder::file(root));
}

inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

}  // namespace batchfs
