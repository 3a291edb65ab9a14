#pragma once
// The ids of Icechunk's objects: random bytes, written in Crockford's base 32.

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace batchfs::icechunk {

/// Identifies a snapshot, a manifest or a chunk.
using ObjectId = std::array<std::byte, 12>;
/// Identifies a node, in every snapshot.
using NodeId = std::array<std::byte, 8>;

/// Most significant bits first, zero bits appended: 20 characters for 12 bytes.
std::string base32(std::span<const std::byte> bytes);
/// nullopt unless it is the text of an id, in upper or lower case: each id has one text.
std::optional<ObjectId> parse_object_id(std::string_view text);

}  // namespace batchfs::icechunk
