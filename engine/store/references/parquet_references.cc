#include "engine/store/references/parquet_references.h"

#include <algorithm>
#include <array>
#include <future>
#include <map>

#include <fmt/format.h>

#include "engine/base/dims.h"
#include "engine/base/json.h"
#include "engine/base/limits.h"
#include "engine/base/strings.h"
#include "engine/store/fingerprint.h"
#include "engine/store/references/json_scanner.h"
#include "engine/store/references/parquet_reader.h"
#include "engine/store/virtual/index_cache.h"

namespace batchfs::references {

namespace {

/// Divisors of the memory budget: for one file of references, with all that it becomes; for those
/// that are kept; for the metadata.
constexpr std::uint64_t kPayloadShare = 2, kRecordsShare = 4, kMetadataShare = 2;
constexpr std::uint64_t kMaxRecordSize = 100'000'000;
/// Memory of a decoded reference.
constexpr std::uint64_t kReferenceBytes = 24;
/// Memory of a row while its file is decoded, at most: four columns, and the table.
constexpr std::uint64_t kRowBytes =
    4 * sizeof(std::int64_t) + ReferenceTable::Builder::kNumberedBytes;
/// Bytes of a file of references, as long as nothing is known of it.
constexpr std::uint64_t kSupposedBytes = 2 << 20;

constexpr const char* kConsolidated = ".zmetadata";

/// How the chunks of an array are numbered.
struct Grid {
  std::vector<std::uint64_t> chunks;  // along each dimension
  std::uint64_t total = 1;
};

Grid grid_of(std::string_view document) {
  const Json json = parse_json(document, "");
  const JsonRef root(json, "");
  const std::vector<JsonRef> shape = root.at("shape").elements(),
                             chunks = root.at("chunks").elements();
  if (shape.size() != chunks.size() || shape.size() > kMaxArrayDims)
    throw root.at("chunks").error("as many lengths as dimensions are needed");
  Grid grid;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const auto length = static_cast<std::uint64_t>(shape[d].integer(0));
    const auto chunk = static_cast<std::uint64_t>(std::max<std::int64_t>(1, chunks[d].integer(0)));
    grid.chunks.push_back(length / chunk + (length % chunk != 0 ? 1 : 0));
    if (__builtin_mul_overflow(grid.total, grid.chunks.back(), &grid.total))
      throw root.at("shape").error("more chunks than 64 bits count");
  }
  return grid;
}

class ParquetReferences final : public References {
 public:
  ParquetReferences(std::shared_ptr<Store> folder, std::string_view metadata,
                    std::uint64_t record_size, std::string digest, std::uint64_t memory)
      : folder_(folder),
        record_size_(record_size),
        records_memory_(memory / kRecordsShare),
        decoding_memory_(memory / kPayloadShare),
        digest_(std::move(digest)),
        records_(std::move(folder), {memory / kPayloadShare, memory / kRecordsShare},
                 "reference_file",
                 [record_size, memory](const std::string&, const std::optional<Buffer>& file) {
                   return decode(file, record_size, memory / kPayloadShare);
                 }) {
    ReferenceTable::Builder builder(memory / kMetadataShare);
    JsonScanner scanner(metadata);
    scanner.expect('{');
    std::string scratch, text_scratch;
    bool is_first = true;
    while (!scanner.take('}')) {
      if (!std::exchange(is_first, false)) scanner.expect(',');
      const std::string key(scanner.string(scratch));
      scanner.expect(':');
      const std::string_view text =
          scanner.peek() == '"' ? scanner.string(text_scratch) : scanner.value();
      if (key == kConsolidated) continue;
      try {
        add_grid(key, text);
        builder.add_within(key, std::as_bytes(std::span(text)));
      } catch (const Error& error) {
        if (error.code() == ErrorCode::no_memory) throw;
        builder.add_malformed(key, error.why());
      }
    }
    // Without the record size, which marks a set: the rest is a Zarr store's.
    const std::string consolidated =
        fmt::format(R"({{"zarr_consolidated_format":1,"metadata":{}}})", metadata);
    builder.add_within(kConsolidated, std::as_bytes(std::span(consolidated)));
    documents_ = builder.finish();
  }

  void find(const std::string& key, Done done) override {
    if (documents_->has(key)) return done(outcome_of(*documents_, key, nullptr));
    ChunkKey chunk;
    if (!parse_chunk_key(key, chunk)) return done(std::nullopt);
    const auto grid = grids_.find(chunk.path);
    if (grid == grids_.end()) return done(std::nullopt);
    const auto number = number_of_chunk(grid->second, chunk.index);
    if (!number) return done(std::nullopt);
    const std::string row = std::to_string(*number % record_size_);
    records_.get(key_of_record(chunk.path, *number / record_size_), kSupposedBytes,
                 [row, done = std::move(done)](IndexCache::Outcome outcome) {
                   if (const auto* error = std::get_if<std::exception_ptr>(&outcome))
                     return done(*error);
                   auto table = std::static_pointer_cast<const ReferenceTable>(
                       std::get<std::shared_ptr<const void>>(std::move(outcome)));
                   const ReferenceTable& rows = *table;
                   done(outcome_of(rows, row, std::move(table)));
                 });
  }

  std::string document_of(const std::string& key) const override {
    ChunkKey chunk;
    if (documents_->has(key) || !parse_chunk_key(key, chunk)) return {};
    const auto grid = grids_.find(chunk.path);
    if (grid == grids_.end()) return {};
    const auto number = number_of_chunk(grid->second, chunk.index);
    return number ? key_of_record(chunk.path, *number / record_size_) : std::string();
  }

  /// Lists the references of an array, reading all of them.
  std::vector<Store::Entry> list(const std::string& prefix) override {
    std::vector<Store::Entry> entries = documents_->list(prefix, folder_->url());
    const auto grid = grids_.find(prefix);
    if (grid == grids_.end()) return entries;
    if (grid->second.total / record_size_ > kMaxDirectories)
      throw Error(ErrorCode::no_memory, "the array has too many files of references", prefix);
    ListingMemory memory;
    for (std::uint64_t first = 0; first < grid->second.total; first += record_size_) {
      const auto table = wait_for(key_of_record(prefix, first / record_size_));
      for (const Store::Entry& row : table->list("", folder_->url())) {
        const std::uint64_t number = first + std::stoull(row.name);
        if (number >= grid->second.total) continue;
        entries.push_back({name_of_chunk(grid->second, number), false});
        memory.add(entries.back(), folder_->url());
      }
    }
    std::sort(entries.begin(), entries.end(),
              [](const Store::Entry& a, const Store::Entry& b) { return a.name < b.name; });
    return entries;
  }

  std::string digest() const override { return digest_; }
  ReferenceTable::Problems problems() const override { return documents_->problems(); }
  std::uint64_t memory() const override {
    return documents_->memory() +
           std::min(chunks_, records_memory_ / kReferenceBytes) * kReferenceBytes +
           std::min(max_rows_, decoding_memory_ / kRowBytes) * kRowBytes;
  }
  std::vector<Store::Counter> counters() const override { return records_.counters(); }

 private:
  /// Adds the grid from the metadata of an array.
  void add_grid(const std::string& key, std::string_view document) {
    constexpr std::string_view kArray = "/.zarray";
    if (!key.ends_with(kArray)) return;
    const std::string path = key.substr(0, key.size() - kArray.size());
    const auto grid = grids_.insert_or_assign(path, grid_of(document)).first;
    chunks_ += std::min(grid->second.total, UINT64_MAX - chunks_);
    max_rows_ = std::max(max_rows_, std::min(grid->second.total, record_size_));
  }

  static DecodedIndex decode(const std::optional<Buffer>& file, std::uint64_t record_size,
                             std::uint64_t memory) {
    // Files without any reference need not exist.
    auto table = file ? parse_parquet_records(file->span(), record_size, memory)
                      : ReferenceTable::Builder(memory).finish();
    const std::uint64_t taken = table->memory() + sizeof(ReferenceTable);
    return {std::move(table), taken};
  }

  static std::string key_of_record(std::string_view path, std::uint64_t record) {
    return fmt::format("{}/refs.{}.parq", path, record);
  }

  static std::optional<std::uint64_t> number_of_chunk(const Grid& grid,
                                                      const std::vector<std::uint32_t>& index) {
    // An array without dimensions has the chunk 0.
    if (grid.chunks.empty())
      return index.size() == 1 && index[0] == 0 ? std::optional(0) : std::nullopt;
    if (index.size() != grid.chunks.size()) return std::nullopt;
    std::uint64_t number = 0;
    for (std::size_t d = 0; d < index.size(); ++d) {
      if (index[d] >= grid.chunks[d]) return std::nullopt;
      number = number * grid.chunks[d] + index[d];
    }
    return number;
  }

  static std::string name_of_chunk(const Grid& grid, std::uint64_t number) {
    if (grid.chunks.empty()) return "0";
    std::vector<std::uint64_t> index(grid.chunks.size());
    for (std::size_t d = index.size(); d-- > 0; number /= grid.chunks[d])
      index[d] = number % grid.chunks[d];
    return fmt::format("{}", fmt::join(index, "."));
  }

  std::shared_ptr<const ReferenceTable> wait_for(const std::string& key) {
    std::promise<IndexCache::Outcome> result;
    records_.get(key, kSupposedBytes,
                 [&result](IndexCache::Outcome outcome) { result.set_value(std::move(outcome)); });
    IndexCache::Outcome outcome = result.get_future().get();
    if (const auto* error = std::get_if<std::exception_ptr>(&outcome))
      std::rethrow_exception(*error);
    return std::static_pointer_cast<const ReferenceTable>(
        std::get<std::shared_ptr<const void>>(std::move(outcome)));
  }

  const std::shared_ptr<Store> folder_;
  const std::uint64_t record_size_, records_memory_, decoding_memory_;
  const std::string digest_;
  std::shared_ptr<const ReferenceTable> documents_;
  std::map<std::string, Grid, std::less<>> grids_;  // of arrays, by path
  std::uint64_t chunks_ = 0;                        // of all, as far as 64 bits count
  std::uint64_t max_rows_ = 0;                      // of a file
  IndexCache records_;
};

}  // namespace

std::shared_ptr<References> open_parquet_references(std::shared_ptr<Store> folder,
                                                    std::string_view consolidated,
                                                    std::uint64_t memory) {
  if (consolidated.find("\"record_size\"") == std::string_view::npos) return nullptr;
  JsonScanner scanner(consolidated);
  scanner.expect('{');
  std::string scratch;
  std::string_view metadata;
  std::optional<std::uint64_t> record_size;
  bool is_first = true;
  while (!scanner.take('}')) {
    if (!std::exchange(is_first, false)) scanner.expect(',');
    const std::string name(scanner.string(scratch));
    scanner.expect(':');
    if (name == "record_size")
      record_size = scanner.count();
    else if (name == "metadata")
      metadata = scanner.value();
    else
      scanner.value();
  }
  if (!record_size) return nullptr;
  if (*record_size == 0 || *record_size > kMaxRecordSize)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("record_size: {} is not from 1 to {}", *record_size, kMaxRecordSize));
  if (!metadata.starts_with('{'))
    throw Error(ErrorCode::invalid_argument, "metadata: expected an object");
  std::string digest = fingerprint(consolidated);
  return std::make_shared<ParquetReferences>(std::move(folder), metadata, *record_size,
                                             std::move(digest), memory);
}

namespace {

void add_row(ReferenceTable::Builder& builder, const std::string& key, std::string_view file,
             std::int64_t begin, std::int64_t length) {
  if (begin < 0 || length < 0)
    throw Error(ErrorCode::corrupt,
                fmt::format("the offset {} or the size {} is negative", begin, length));
  if (file.empty()) throw Error(ErrorCode::corrupt, "a range of no file");
  if (begin == 0 && length == 0) return builder.add_whole(key, file);
  builder.add_range(key, file, static_cast<std::uint64_t>(begin),
                    static_cast<std::uint64_t>(length));
}

constexpr std::array<std::string_view, 4> kWanted = {"path", "offset", "size", "raw"};

/// Bytes that decode_records() claims for a file of this size, at most.
std::uint64_t decoding_bytes(std::uint64_t stored, const ParquetSize& size) {
  constexpr std::uint64_t kTables = 4096;  // nodes and the first slots of the builder
  // A text is claimed twice over in its column and in the table, where a file name has a slot.
  constexpr std::uint64_t kTextBytes = 4 * sizeof(std::uint64_t) + 4 * sizeof(std::uint32_t);
  return stored + size.largest + size.rows * kRowBytes + 2 * size.numbers + 4 * size.texts +
         std::min(2 * size.rows, size.texts / 4) * kTextBytes + kTables;
}

void add_rows(const ParquetTable& table, ReferenceTable::Builder& builder) {
  const auto column = [&table](std::string_view name, bool is_text) {
    const ParquetColumn* found = table.find(name);
    if (found != nullptr && found->is_text != is_text) {
      // For nulls alone, pyarrow writes numbers.
      const bool is_null = is_text && std::all_of(found->numbers.begin(), found->numbers.end(),
                                                  [](std::int64_t number) { return number == 0; });
      if (is_null) return static_cast<const ParquetColumn*>(nullptr);
      throw Error(ErrorCode::corrupt, fmt::format("the column '{}' has another type", name));
    }
    return found;
  };
  const ParquetColumn *path = column("path", true), *raw = column("raw", true),
                      *offset = column("offset", false), *size = column("size", false);
  if (table.find("path") == nullptr || offset == nullptr || size == nullptr)
    throw Error(ErrorCode::corrupt,
                "this file of references has no columns 'path', 'offset' and 'size'");
  const auto text = [](const ParquetColumn* of, std::uint64_t row) {
    const std::uint32_t which = of == nullptr ? ParquetColumn::kNull : of->which[row];
    return which == ParquetColumn::kNull ? std::nullopt : std::optional(of->text(which));
  };
  for (std::uint64_t row = 0; row < table.rows; ++row) {
    const std::string key = std::to_string(row);
    if (const auto bytes = text(raw, row)) {
      builder.add_within(key, std::as_bytes(std::span(*bytes)));
      continue;
    }
    const auto file_name = text(path, row);
    if (!file_name) continue;
    const std::int64_t begin = offset->numbers[row], length = size->numbers[row];
    if (file_name->empty() && begin == 0 && length == 0) continue;
    try {
      add_row(builder, key, *file_name, begin, length);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::no_memory) throw;
      builder.add_malformed(key, fmt::format("row {}: {}", row, error.why()));
    }
  }
}

std::shared_ptr<const ReferenceTable> decode_records(std::span<const std::byte> file,
                                                     std::uint64_t rows, std::uint64_t memory) {
  Claims claims(memory);
  claims.take(file.size());
  auto table = std::make_unique<const ParquetTable>(read_parquet(file, kWanted, rows, claims));
  ReferenceTable::Builder builder(memory - claims.used());
  builder.reserve_numbered(table->rows);
  add_rows(*table, builder);
  table = nullptr;
  return builder.finish();
}

}  // namespace

std::shared_ptr<const ReferenceTable> parse_parquet_records(std::span<const std::byte> file,
                                                            std::uint64_t rows,
                                                            std::uint64_t memory) try {
  return decode_records(file, rows, memory);
} catch (const Error& error) {
  if (error.code() != ErrorCode::no_memory) throw;
  const ParquetSize size = parquet_size(file, kWanted, rows);
  const std::uint64_t bytes = decoding_bytes(file.size(), size);
  if (bytes <= memory) throw;  // the footer states less than the file has
  constexpr std::uint64_t kMegabyte = 1 << 20;
  throw Error(ErrorCode::no_memory,
              fmt::format("its {} references take up to {} of memory while they are read, and one "
                          "file of references gets half of --memory, {}; give --memory {}M or more",
                          size.rows, format_size(bytes), format_size(memory),
                          kPayloadShare * bytes / kMegabyte + 1));
}

}  // namespace batchfs::references
