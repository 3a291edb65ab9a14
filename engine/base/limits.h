#pragma once
// Limits on the contents of a store, each with the reason for its value. batchfs-semantics(7) lists
// them for users.
//
// They bound time and memory for hostile or damaged stores, and stay far above the needs of real
// stores.

#include <cstddef>
#include <cstdint>

namespace batchfs {

/// Bytes of the path of a group or array. Linux takes no longer path in a system call (PATH_MAX),
/// S3 no key of more than 1024 bytes.
inline constexpr std::size_t kMaxNodePath = 4095;
/// Levels of groups. Each level of a path costs a group of its own, so that depth multiplies
/// memory. Real stores have fewer than ten.
inline constexpr std::ptrdiff_t kMaxNodeDepth = 64;

/// Bytes: the least that `--memory` takes. With less not even one block of a compressor could be
/// reserved; a smaller number is most likely one without its M.
inline constexpr std::uint64_t kMinMemory = 16 << 10;

/// Bytes of one metadata document, decompressed. 100,000 arrays with their attributes take about
/// 100 MB.
inline constexpr std::uint64_t kMaxDocument = 256 << 20;
/// Metadata takes this much memory beside the budget (`--memory`): enough for the documents of
/// ordinary stores under the smallest budget. Memory beyond this counts against the budget.
inline constexpr std::uint64_t kFreeMetadata = 16 << 20;
/// Bytes that the labels of a dataset may take, and the lists of a view, beside batches. `budget`
/// is `--memory`; 0: there is none.
constexpr std::uint64_t max_lists(std::uint64_t budget) {
  return budget == 0 ? UINT64_MAX : kFreeMetadata + budget / 2;
}

/// Brackets open at one place of a JSON text. The parser recurses when values are copied and
/// destroyed.
inline constexpr int kMaxJsonDepth = 64;
/// Keys of one object. Consolidated v2 metadata has three keys per array; this allows a million
/// arrays.
inline constexpr std::uint32_t kMaxJsonKeys = 4'000'000;
/// Bytes of one string. The parser holds four copies of the longest one. Attributes hold at most a
/// few megabytes of text.
inline constexpr std::size_t kMaxJsonString = 16 << 20;
/// Characters of one number: the parser's conversion takes more than linear time. A double has at
/// most 767 digits.
inline constexpr std::size_t kMaxJsonNumber = 1024;
/// Memory that a parsed JSON document may take where the caller names no other limit: view files,
/// statistics, answers of servers. A list of a million labels takes 64 MB.
inline constexpr std::uint64_t kMaxJsonMemory = 256 << 20;

/// Codecs of one chain, each level of sharding counted as one. Each may add an eighth to the size
/// of its input, so that memory grows with the power of their number. Real arrays have up to six.
inline constexpr std::size_t kMaxCodecs = 32;
/// Levels of sharding inside sharding: each level holds a decoded chunk of its own.
inline constexpr int kMaxShardLevels = 4;

/// Directories that are listed to find groups and arrays without consolidated metadata. At 1 ms
/// each it takes a quarter of an hour.
inline constexpr std::uint64_t kMaxDirectories = 1'000'000;
/// Memory for the names of one directory: about 500,000 short ones. Directories of chunks may hold
/// more, but are not listed to the end: an array is known by its metadata.
inline constexpr std::uint64_t kMaxListing = 32 << 20;
/// Requests for one listing. Services send up to 1000 names for each, and may send fewer.
inline constexpr int kMaxListingPages = 10'000;
/// Pieces of markup in one page of a listing: 5000 names with 25 properties each. The parser takes
/// about 70 bytes for each.
inline constexpr std::size_t kMaxListingMarkup = 400'000;

}  // namespace batchfs
