#include "engine/store/references/parquet_reader.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include <fmt/format.h>
#include <libdeflate.h>
#include <zstd.h>

#include "engine/base/buffer.h"
#include "engine/base/printable.h"
#include "engine/store/deflate_decoder.h"
#include "engine/store/little_endian.h"
#include "engine/store/references/parquet_runs.h"
#include "engine/store/references/snappy.h"
#include "engine/store/references/thrift_reader.h"

namespace batchfs::references {

namespace {

using Bytes = std::span<const std::byte>;
using Field = ThriftReader::Field;
using Type = ThriftReader::Type;

constexpr std::string_view kMagic = "PAR1", kEncryptedMagic = "PARE";
constexpr std::size_t kMaxFooter = 16 << 20;
constexpr std::size_t kMaxColumns = 64;

// Numbers of parquet.thrift's enums.
enum PhysicalType { kInt32 = 1, kInt64 = 2, kInt96 = 3, kByteArray = 6 };
enum Repetition { kRequired, kOptional, kRepeated };
enum Encoding { kPlain = 0, kPlainDictionary = 2, kRle = 3, kRleDictionary = 8 };
enum Compression { kUncompressed = 0, kSnappy = 1, kGzip = 2, kZstd = 6 };
enum PageType { kDataPage = 0, kIndexPage = 1, kDictionaryPage = 2, kDataPageV2 = 3 };

Error damaged(const std::string& what) {
  return Error(ErrorCode::corrupt, "the Parquet file is damaged: " + what);
}
Error unknown(const std::string& what) {
  return Error(ErrorCode::not_supported,
               "the Parquet file has " + what + ", which batchfs does not read");
}

const char* name_of_compression(std::int64_t codec) {
  constexpr const char* kNames[] = {"none",   "Snappy", "gzip", "LZO",
                                    "Brotli", "LZ4",    "zstd", "LZ4"};
  return codec >= 0 && codec < 8 ? kNames[codec] : "of an unknown kind";
}

struct SchemaColumn {
  std::string name;
  std::int64_t type = -1, repetition = kRequired, children = 0;
};

struct ColumnChunk {
  std::int64_t type = -1, codec = 0, values = 0, decompressed = 0, size = 0, data_at = -1,
               dictionary_at = -1;
};

struct Page {
  std::int64_t type = -1, size = -1, stored = -1;  // bytes decompressed and as stored
  std::int64_t values = -1, encoding = -1, levels_encoding = kRle;
  std::int64_t definition_bytes = 0, repetition_bytes = 0;  // of version 2
  bool is_compressed = true;                                // of version 2
};

class Reader {
 public:
  Reader(Bytes file, std::span<const std::string_view> wanted, std::uint64_t most_rows,
         Claims& claims)
      : file_(file), wanted_(wanted), most_rows_(most_rows), claims_(claims) {}

  ParquetTable run() {
    for_each_group([this](std::span<const ColumnChunk> chunks, std::uint64_t rows) {
      for (std::size_t i = 0; i < chunks.size(); ++i)
        if (into_[i] != SIZE_MAX)
          read_column(columns_[i], chunks[i], rows, table_.columns[into_[i]]);
    });
    return std::move(table_);
  }

  ParquetSize size() {
    ParquetSize size;
    for_each_group([&](std::span<const ColumnChunk> chunks, std::uint64_t rows) {
      size.rows += rows;
      for (std::size_t i = 0; i < chunks.size(); ++i) {
        if (into_[i] == SIZE_MAX || chunks[i].decompressed < 0) continue;
        const auto bytes = static_cast<std::uint64_t>(chunks[i].decompressed);
        std::uint64_t& sum = table_.columns[into_[i]].is_text ? size.texts : size.numbers;
        sum += std::min(bytes, kMaxBytes - sum);
        size.largest = std::max(size.largest, std::min(bytes, kMaxBytes));
      }
    });
    return size;
  }

 private:
  static constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 48;  // of any file

  /// Parses the footer. `use`: gets the columns of each row group, and its rows.
  template <class Use>
  void for_each_group(Use use) {
    ThriftReader footer(footer_bytes());
    std::uint64_t told = 0;
    for (Field field; footer.next(field);) {
      if (field.id == 2) {
        read_schema(footer, field.type);
      } else if (field.id == 3) {
        told = row_count(footer.integer(field.type));
      } else if (field.id == 4) {
        if (columns_.empty()) throw damaged("it has no schema");
        const auto groups = footer.list(field.type);
        for (std::uint64_t i = 0; i < groups.size; ++i) row_group(footer, groups.type, use);
      } else {
        footer.skip(field.type);
      }
    }
    if (table_.rows != told) throw damaged("its row groups have other rows than it says");
  }

  Bytes footer_bytes() const {
    const auto is_at = [this](std::size_t at, std::string_view magic) {
      return std::memcmp(file_.data() + at, magic.data(), magic.size()) == 0;
    };
    if (file_.size() < 12) throw damaged("it is too short");
    if (is_at(file_.size() - 4, kEncryptedMagic)) throw unknown("an encrypted footer");
    if (!is_at(0, kMagic) || !is_at(file_.size() - 4, kMagic))
      throw Error(ErrorCode::corrupt, "this is not a Parquet file");
    const std::uint32_t size = little_endian<std::uint32_t>(file_, file_.size() - 8);
    if (size > kMaxFooter || size > file_.size() - 12) throw damaged("its footer is too long");
    return file_.subspan(file_.size() - 8 - size, size);
  }

  std::uint64_t row_count(std::int64_t rows) const {
    if (rows < 0 || static_cast<std::uint64_t>(rows) > most_rows_)
      throw Error(ErrorCode::corrupt,
                  fmt::format("it has {} rows, at most {} were expected", rows, most_rows_));
    return static_cast<std::uint64_t>(rows);
  }

  void read_schema(ThriftReader& in, Type type) {
    const auto elements = in.list(type);
    for (std::uint64_t i = 0; i < elements.size; ++i) {
      SchemaColumn column;
      for (Field field; in.next(field);) {
        if (field.id == 1)
          column.type = in.integer(field.type);
        else if (field.id == 3)
          column.repetition = in.integer(field.type);
        else if (field.id == 4)
          column.name = std::string(in.binary(field.type).substr(0, 256));
        else if (field.id == 5)
          column.children = in.integer(field.type);
        else
          in.skip(field.type);
      }
      if (i == 0) continue;  // the root
      if (column.children != 0 || column.repetition == kRepeated)
        throw unknown(fmt::format("a nested column '{}'", printable(column.name)));
      if (columns_.size() == kMaxColumns) throw unknown("more than 64 columns");
      columns_.push_back(std::move(column));
    }
    into_.assign(columns_.size(), SIZE_MAX);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const auto is_same = [&](const auto& name) { return name == columns_[i].name; };
      if (std::none_of(wanted_.begin(), wanted_.end(), is_same)) continue;
      if (table_.find(columns_[i].name) != nullptr) throw damaged("two columns have one name");
      into_[i] = table_.columns.size();
      ParquetColumn& column = table_.columns.emplace_back();
      column.name = columns_[i].name;
      column.is_text = columns_[i].type == kByteArray;
    }
  }

  template <class Use>
  void row_group(ThriftReader& in, Type type, Use use) {
    if (type != Type::structure) throw damaged("a row group is none");
    std::vector<ColumnChunk> chunks;
    std::uint64_t rows = 0;
    for (Field field; in.next(field);) {
      if (field.id == 1) {
        const auto list = in.list(field.type);
        if (list.size != columns_.size() || list.type != Type::structure)
          throw damaged("a row group has other columns than the schema");
        for (std::uint64_t i = 0; i < list.size; ++i) chunks.push_back(column_chunk(in));
      } else if (field.id == 3) {
        rows = row_count(in.integer(field.type));
      } else {
        in.skip(field.type);
      }
    }
    if (chunks.size() != columns_.size()) throw damaged("a row group without columns");
    row_count(static_cast<std::int64_t>(table_.rows + rows));
    use(chunks, rows);
    table_.rows += rows;
  }

  ColumnChunk column_chunk(ThriftReader& in) {
    ColumnChunk chunk;
    bool has_data = false;
    for (Field field; in.next(field);) {
      if (field.id == 1) {
        throw unknown("columns in other files");
      } else if (field.id == 8 || field.id == 9) {
        throw unknown("encrypted columns");
      } else if (field.id == 3) {
        has_data = true;
        for (Field inner; in.next(inner);) {
          std::int64_t* const number = inner.id == 1    ? &chunk.type
                                       : inner.id == 4  ? &chunk.codec
                                       : inner.id == 5  ? &chunk.values
                                       : inner.id == 6  ? &chunk.decompressed
                                       : inner.id == 7  ? &chunk.size
                                       : inner.id == 9  ? &chunk.data_at
                                       : inner.id == 11 ? &chunk.dictionary_at
                                                        : nullptr;
          if (number != nullptr)
            *number = in.integer(inner.type);
          else
            in.skip(inner.type);
        }
      } else {
        in.skip(field.type);
      }
    }
    if (!has_data) throw damaged("a column without a description");
    return chunk;
  }

  // ---- pages ----
  void read_column(const SchemaColumn& schema, const ColumnChunk& chunk, std::uint64_t rows,
                   ParquetColumn& column) {
    const bool is_number = schema.type == kInt32 || schema.type == kInt64;
    if (chunk.type != schema.type) throw damaged("a column has another type than the schema says");
    if (!is_number && schema.type != kByteArray)
      throw unknown(fmt::format("a column '{}' of {}", printable(schema.name),
                                schema.type == kInt96 ? "type INT96" : "another type"));
    if (chunk.values < 0 || static_cast<std::uint64_t>(chunk.values) != rows)
      throw damaged("a column has other rows than its group");
    const std::int64_t begin = chunk.dictionary_at > 0 && chunk.dictionary_at < chunk.data_at
                                   ? chunk.dictionary_at
                                   : chunk.data_at;
    if (begin < 0 || chunk.size < 0 || static_cast<std::uint64_t>(begin) > file_.size() ||
        static_cast<std::uint64_t>(chunk.size) > file_.size() - static_cast<std::uint64_t>(begin))
      throw damaged("a column lies outside of it");
    Bytes rest =
        file_.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(chunk.size));
    claims_.take(rows * (column.is_text ? sizeof(std::uint32_t) : sizeof(std::int64_t)));
    if (column.is_text)
      column.which.reserve(table_.rows + rows);
    else
      column.numbers.reserve(table_.rows + rows);
    dictionary_.clear();
    first_text_ = texts_ = column.ends.size();
    has_dictionary_ = false;
    std::uint64_t done = 0;
    while (done < rows) {
      ThriftReader in(rest);
      const Page page = page_header(in);
      rest = rest.subspan(in.position());
      if (page.stored < 0 || static_cast<std::uint64_t>(page.stored) > rest.size())
        throw damaged("a page lies outside of its column");
      const Bytes stored = rest.first(static_cast<std::size_t>(page.stored));
      rest = rest.subspan(stored.size());
      if (page.type == kIndexPage) continue;
      if (page.type == kDictionaryPage) {
        read_dictionary(page, decompress(stored, page.size, chunk.codec), schema, column);
        continue;
      }
      if (page.values < 0 || static_cast<std::uint64_t>(page.values) > rows - done)
        throw damaged("a page has more rows than its column");
      read_page(page, stored, chunk.codec, schema, column);
      done += static_cast<std::uint64_t>(page.values);
    }
  }

  static Page page_header(ThriftReader& in) {
    Page page;
    for (Field field; in.next(field);) {
      if (field.id == 1) {
        page.type = in.integer(field.type);
      } else if (field.id == 2) {
        page.size = in.integer(field.type);
      } else if (field.id == 3) {
        page.stored = in.integer(field.type);
      } else if (field.type == Type::structure &&
                 (field.id == 5 || field.id == 7 || field.id == 8)) {
        for (Field inner; in.next(inner);) page_detail(in, field.id, inner, page);
      } else {
        in.skip(field.type);
      }
    }
    if (page.type < kDataPage || page.type > kDataPageV2) throw unknown("pages of an unknown kind");
    return page;
  }

  /// `header`: the number of the header's structure in PageHeader.
  static void page_detail(ThriftReader& in, int header, const Field& field, Page& page) {
    const bool is_v2 = header == 8;
    if (field.id == 1) {
      page.values = in.integer(field.type);
    } else if (field.id == (is_v2 ? 4 : 2)) {
      page.encoding = in.integer(field.type);
    } else if (header == 5 && field.id == 3) {
      page.levels_encoding = in.integer(field.type);
    } else if (is_v2 && field.id == 5) {
      page.definition_bytes = in.integer(field.type);
    } else if (is_v2 && field.id == 6) {
      page.repetition_bytes = in.integer(field.type);
    } else if (is_v2 && field.id == 7) {
      page.is_compressed = ThriftReader::boolean(field.type);
    } else {
      in.skip(field.type);
    }
  }

  Buffer decompress(Bytes stored, std::int64_t told, std::int64_t codec) {
    if (told < 0) throw damaged("a page without its size");
    const auto size = static_cast<std::uint64_t>(told);
    if (size > largest_page_) {  // one is in memory at a time
      claims_.take(size - largest_page_);
      largest_page_ = size;
    }
    Buffer out(size);
    std::size_t got = stored.size();
    switch (codec) {
      case kUncompressed:
        if (got == size && got > 0) std::memcpy(out.data(), stored.data(), got);
        break;
      case kSnappy:
        decode_snappy(stored, out.span());
        got = size;
        break;
      case kGzip:
        if (libdeflate_gzip_decompress(deflate_decoder(), stored.data(), stored.size(), out.data(),
                                       size, &got) != LIBDEFLATE_SUCCESS)
          throw damaged("gzip data do not decode");
        break;
      case kZstd:
        got = ZSTD_decompress(out.data(), size, stored.data(), stored.size());
        if (ZSTD_isError(got) != 0) throw damaged("zstd data do not decode");
        break;
      default:
        throw unknown(fmt::format("pages with compression {}", name_of_compression(codec)));
    }
    if (got != size) throw damaged("a page has another size than it says");
    return out;
  }

  /// Takes PLAIN values off `rest`.
  std::int64_t plain_number(Bytes& rest, std::int64_t type) const {
    const std::size_t size = type == kInt32 ? 4 : 8;
    if (rest.size() < size) throw damaged("a page ends too early");
    const std::int64_t value = type == kInt32 ? little_endian<std::int32_t>(rest, 0)
                                              : little_endian<std::int64_t>(rest, 0);
    rest = rest.subspan(size);
    return value;
  }
  void plain_text(Bytes& rest, ParquetColumn& column) {
    if (rest.size() < 4) throw damaged("a page ends too early");
    const std::uint32_t size = little_endian<std::uint32_t>(rest, 0);
    if (size > rest.size() - 4) throw damaged("a text ends too late");
    claims_.take(2 * (std::uint64_t{size} + sizeof(std::uint64_t)));
    column.bytes.append(reinterpret_cast<const char*>(rest.data()) + 4, size);
    column.ends.push_back(column.bytes.size());
    if (column.ends.size() >= ParquetColumn::kNull) throw unknown("4 billion texts");
    rest = rest.subspan(4 + std::size_t{size});
  }

  void read_dictionary(const Page& page, const Buffer& bytes, const SchemaColumn& schema,
                       ParquetColumn& column) {
    if (page.encoding != kPlain && page.encoding != kPlainDictionary)
      throw unknown("a dictionary that is encoded itself");
    if (has_dictionary_) throw damaged("a column with two dictionaries");
    has_dictionary_ = true;
    Bytes rest = bytes.span();
    first_text_ = column.ends.size();
    if (!column.is_text && page.values > 0) {
      const std::size_t numbers =
          std::min(static_cast<std::size_t>(page.values), rest.size() / sizeof(std::int32_t));
      claims_.take(numbers * sizeof(std::int64_t));
      dictionary_.reserve(numbers);
    }
    for (std::int64_t i = 0; i < page.values; ++i) {
      if (column.is_text)
        plain_text(rest, column);
      else
        dictionary_.push_back(plain_number(rest, schema.type));
    }
    texts_ = column.ends.size();
  }

  void read_page(const Page& page, Bytes stored, std::int64_t codec, const SchemaColumn& schema,
                 ParquetColumn& column) {
    const auto values = static_cast<std::size_t>(page.values);
    const bool is_optional = schema.repetition == kOptional;
    Bytes levels, rest;
    Buffer decompressed;
    if (page.type == kDataPageV2) {
      if (page.definition_bytes < 0 || page.repetition_bytes != 0 ||
          static_cast<std::uint64_t>(page.definition_bytes) > stored.size() ||
          page.definition_bytes > page.size)
        throw damaged("a page's levels are too long");
      levels = stored.first(static_cast<std::size_t>(page.definition_bytes));
      decompressed = decompress(stored.subspan(levels.size()), page.size - page.definition_bytes,
                                page.is_compressed ? codec : std::int64_t{kUncompressed});
      rest = decompressed.span();
    } else {
      decompressed = decompress(stored, page.size, codec);
      rest = decompressed.span();
      if (is_optional) {
        if (page.levels_encoding != kRle) throw unknown("levels of an old encoding");
        if (rest.size() < 4) throw damaged("a page ends too early");
        const std::uint32_t size = little_endian<std::uint32_t>(rest, 0);
        if (size > rest.size() - 4) throw damaged("a page's levels are too long");
        levels = rest.subspan(4, size);
        rest = rest.subspan(4 + std::size_t{size});
      }
    }
    const bool by_dictionary = page.encoding == kRleDictionary || page.encoding == kPlainDictionary;
    if (!by_dictionary && page.encoding != kPlain)
      throw unknown(fmt::format("values of encoding {}", page.encoding));
    std::optional<ParquetRuns> defined, numbers;
    if (is_optional) defined.emplace(levels, 1);
    for (std::size_t i = 0; i < values; ++i) {
      if (defined && defined->next() == 0) {
        if (column.is_text)
          column.which.push_back(ParquetColumn::kNull);
        else
          column.numbers.push_back(0);
        continue;
      }
      if (by_dictionary && !numbers) {
        if (rest.empty()) throw damaged("a page ends too early");
        numbers.emplace(rest.subspan(1), std::to_integer<int>(rest.front()));
      }
      if (column.is_text)
        column.which.push_back(text_number(rest, numbers, column));
      else
        column.numbers.push_back(number(rest, numbers, schema.type));
    }
  }

  std::uint32_t text_number(Bytes& rest, std::optional<ParquetRuns>& numbers,
                            ParquetColumn& column) {
    if (!numbers) {
      plain_text(rest, column);
      return static_cast<std::uint32_t>(column.ends.size() - 1);
    }
    const std::uint32_t which = numbers->next();
    if (which >= texts_ - first_text_) throw damaged("a text that the dictionary does not have");
    return static_cast<std::uint32_t>(first_text_ + which);
  }

  std::int64_t number(Bytes& rest, std::optional<ParquetRuns>& numbers, std::int64_t type) const {
    if (!numbers) return plain_number(rest, type);
    const std::uint32_t which = numbers->next();
    if (which >= dictionary_.size()) throw damaged("a number that the dictionary does not have");
    return dictionary_[which];
  }

  const Bytes file_;
  const std::span<const std::string_view> wanted_;
  const std::uint64_t most_rows_;
  Claims& claims_;
  std::uint64_t largest_page_ = 0;  // bytes
  std::vector<SchemaColumn> columns_;
  std::vector<std::size_t> into_;  // column of table_; SIZE_MAX: not wanted
  ParquetTable table_;

  // State of the column chunk that is being read.
  bool has_dictionary_ = false;
  std::vector<std::int64_t> dictionary_;
  std::size_t first_text_ = 0, texts_ = 0;  // the dictionary's among the column's texts
};

}  // namespace

const ParquetColumn* ParquetTable::find(std::string_view name) const {
  for (const ParquetColumn& column : columns)
    if (column.name == name) return &column;
  return nullptr;
}

ParquetTable read_parquet(Bytes file, std::span<const std::string_view> wanted,
                          std::uint64_t most_rows, Claims& claims) {
  return Reader(file, wanted, most_rows, claims).run();
}

ParquetSize parquet_size(Bytes file, std::span<const std::string_view> wanted,
                         std::uint64_t most_rows) {
  Claims none(0);
  return Reader(file, wanted, most_rows, none).size();
}

}  // namespace batchfs::references
