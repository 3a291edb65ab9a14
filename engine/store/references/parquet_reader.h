#pragma once
// Reads small Parquet files with a flat schema of numbers and texts, in which kerchunk, fsspec and
// VirtualiZarr write references. No Parquet library is available on the systems that batchfs is
// built for; this reads the files of those writers (fastparquet, pyarrow), and refuses the rest by
// name.
//
// Source: apache/parquet-format (parquet.thrift, Encodings.md, Compression.md): data pages v1 and
// v2, PLAIN and dictionary encodings, definition levels as RLE; uncompressed, Snappy, gzip, zstd.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/store/virtual/claims.h"

namespace batchfs::references {

struct ParquetColumn {
  static constexpr std::uint32_t kNull = UINT32_MAX;

  std::string name;
  bool is_text = false;
  std::vector<std::int64_t> numbers;  // by row; 0 for null
  std::vector<std::uint32_t> which;   // of texts, by row; kNull
  std::vector<std::uint64_t> ends;    // of each text in `bytes`
  std::string bytes;

  std::string_view text(std::uint32_t number) const {
    const std::uint64_t begin = number == 0 ? 0 : ends[number - 1];
    return std::string_view(bytes).substr(begin, ends[number] - begin);
  }
};

struct ParquetTable {
  std::uint64_t rows = 0;
  std::vector<ParquetColumn> columns;  // the wanted columns that exist
  /// nullptr where there is none.
  const ParquetColumn* find(std::string_view name) const;
};

/// Reads the columns `wanted`. Throws corrupt, not_supported, no_memory beyond the limit of
/// `claims`, and corrupt for more than `most_rows`.
ParquetTable read_parquet(std::span<const std::byte> file, std::span<const std::string_view> wanted,
                          std::uint64_t most_rows, Claims& claims);

/// The size of a file as its footer states it: bytes are those of decompressed pages.
struct ParquetSize {
  std::uint64_t rows = 0;
  std::uint64_t numbers = 0, texts = 0;  // bytes of the wanted columns
  std::uint64_t largest = 0;             // bytes of one column in one row group
};
/// Throws as read_parquet() for a footer that it does not read.
ParquetSize parquet_size(std::span<const std::byte> file, std::span<const std::string_view> wanted,
                         std::uint64_t most_rows);

}  // namespace batchfs::references
