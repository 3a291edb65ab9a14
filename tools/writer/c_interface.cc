// The C interface over PredictionOutput: see batchfs_writer.h.

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/base/utf8.h"
#include "engine/write/rechunk_arrays.h"
#include "tools/writer/batchfs_writer.h"
#include "tools/writer/prediction_output.h"

using batchfs::Error;
using batchfs::ErrorCode;

struct batchfs_writer {
  explicit batchfs_writer(const batchfs::OutputRequest& request) : output(request) {}
  batchfs::PredictionOutput output;
};

namespace {

Error invalid(std::string why) { return Error(ErrorCode::invalid_argument, std::move(why)); }

/// Copies the text as far as the caller's buffer takes it, cut between code points.
void give(char* error, const char* text) {
  if (error == nullptr) return;
  std::size_t size = std::strlen(text);
  if (size >= BATCHFS_WRITER_ERROR_SIZE) {
    size = BATCHFS_WRITER_ERROR_SIZE - 1;
    while (size > 0 && batchfs::is_utf8_tail(text[size])) --size;
  }
  std::memcpy(error, text, size);
  error[size] = '\0';
}

/// Runs `body`; turns its exceptions into an errno and a text.
template <class Body>
int guarded(char* error, Body&& body) {
  try {
    give(error, "");
    body();
    return 0;
  } catch (const Error& thrown) {
    give(error, thrown.what());
    return batchfs::to_errno(thrown.code());
  } catch (const std::bad_alloc&) {
    give(error, "out of memory");
    return ENOMEM;
  } catch (const std::exception& thrown) {
    give(error, thrown.what());
    return EIO;
  } catch (...) {
    give(error, "unknown failure");
    return EIO;
  }
}

/// Size of the struct's first version: a caller that passes less did not set the size.
constexpr std::size_t kFirstOptions =
    offsetof(batchfs_writer_options, store_options) + sizeof(batchfs_writer_options::store_options);

batchfs_writer_options known(const batchfs_writer_options* given) {
  batchfs_writer_options options{};
  if (given == nullptr) return options;
  if (given->size < kFirstOptions) throw invalid("batchfs_writer_options::size is not set");
  std::memcpy(&options, given, std::min(given->size, sizeof options));
  return options;
}

std::vector<std::string> listed(const char* const* texts) {
  std::vector<std::string> list;
  for (; texts != nullptr && *texts != nullptr; ++texts) list.emplace_back(*texts);
  return list;
}

bool is_given(const char* text) { return text != nullptr && *text != '\0'; }

std::map<std::string, std::int64_t> lengths_of(const char* text, const char* option) {
  if (!is_given(text)) return {};
  return batchfs::parse_lengths(text, option);
}

batchfs::Compression codec_of(const char* text) {
  try {
    return batchfs::parse_compression(text);
  } catch (const Error& error) {
    throw invalid(fmt::format("codec=\"{}\" is unknown: {}", text, error.why()));
  }
}

batchfs::DataType type_of(const char* name) {
  if (name == nullptr) throw invalid("dtype is NULL; pass \"float32\" or another type of numpy");
  return std::strcmp(name, "bfloat16") == 0 ? batchfs::bfloat16() : batchfs::parse_numpy_type(name);
}

int rank_number(std::int64_t number, const char* option) {
  if (number < 0 || number > std::numeric_limits<int>::max())
    throw invalid(fmt::format("{} is {}; pass a number from 0 on", option, number));
  return static_cast<int>(number);
}

batchfs::DescriptionOptions description_of(const batchfs_writer_options& options) {
  batchfs::DescriptionOptions result;
  result.tensors = listed(options.tensors);
  if (is_given(options.name)) result.name = options.name;
  const std::vector<std::string> names = listed(options.names);
  if (names.size() % 2 != 0)
    throw invalid(fmt::format("names: '{}' has no name of an array behind it", names.back()));
  for (std::size_t i = 0; i < names.size(); i += 2) result.names[names[i]] = names[i + 1];
  const std::string time = is_given(options.time) ? options.time : "valid";
  if (time != "valid" && time != "lead")
    throw invalid(fmt::format("time=\"{}\" is unknown: pass \"valid\" or \"lead\"", time));
  result.lead_time = time == "lead";
  const std::string reduce = is_given(options.reduce) ? options.reduce : "";
  if (!reduce.empty() && reduce != "window")
    throw invalid(fmt::format("reduce=\"{}\" is unknown: pass \"window\", or nothing", reduce));
  result.reduce = !reduce.empty();
  if (is_given(options.dtype)) {
    if (std::strcmp(options.dtype, "bfloat16") == 0)
      throw invalid("arrays of bfloat16 have no type in numpy; pass dtype=\"float32\"");
    result.type = type_of(options.dtype);
  }
  result.denormalize = options.denormalize != 0;
  result.epoch = options.epoch;
  return result;
}

batchfs::OutputRequest request_of(const char* store, const char* view, const char* output,
                                  const batchfs_writer_options& options) {
  if (!is_given(store) || !is_given(view) || !is_given(output))
    throw invalid("a store, a view and an output are needed");
  batchfs::OutputRequest request{.store = store,
                                 .store_options = listed(options.store_options),
                                 .view = view,
                                 .description = description_of(options)};
  if (is_given(options.part)) request.part = options.part;
  batchfs::PredictionOptions& writing = request.writing;
  writing.output = output;
  writing.overlap = batchfs::parse_overlap(is_given(options.overlap) ? options.overlap : "error");
  writing.rank = rank_number(options.rank, "rank");
  writing.world = std::max(1, rank_number(options.world, "world"));
  writing.chunks = lengths_of(options.chunks, "chunks");
  writing.shards = lengths_of(options.shards, "shards");
  if (is_given(options.codec)) writing.compression = codec_of(options.codec);
  if (options.memory != 0) writing.memory = options.memory;
  if (options.threads < 0) throw invalid(fmt::format("threads is {}", options.threads));
  writing.threads = options.threads;
  return request;
}

batchfs::PredictionOutput& output_of(batchfs_writer* writer) {
  if (writer == nullptr) throw invalid("the writer is NULL");
  return writer->output;
}

/// Sets the count and copies as many numbers as the caller's memory takes.
template <class Numbers, class Number>
void give(const Numbers& all, Number* numbers, std::size_t capacity, std::size_t* count) {
  if (count == nullptr || (numbers == nullptr && capacity > 0))
    throw invalid("a place for the numbers and their count is needed");
  const auto taken = static_cast<std::ptrdiff_t>(std::min<std::size_t>(all.size(), capacity));
  std::copy(all.begin(), all.begin() + taken, numbers);
  *count = all.size();
}

}  // namespace

const char* batchfs_writer_version(void) { return BATCHFS_VERSION; }

int batchfs_writer_create(const char* store, const char* view, const char* output,
                          const batchfs_writer_options* options, batchfs_writer** writer,
                          char* error) {
  return guarded(error, [&] {
    if (writer == nullptr) throw invalid("a place for the writer is needed");
    *writer = nullptr;
    *writer =
        std::make_unique<batchfs_writer>(request_of(store, view, output, known(options))).release();
  });
}

int batchfs_writer_write(batchfs_writer* writer, const char* tensor, const int64_t* samples,
                         size_t count, const void* values, const char* dtype,
                         const int64_t* strides, char* error) {
  return guarded(error, [&] {
    batchfs::PredictionOutput& output = output_of(writer);
    const batchfs::DataType type = type_of(dtype);
    if (count == 0) return;
    if (samples == nullptr || values == nullptr)
      throw invalid("the numbers of the samples and their values are needed");
    output.write(tensor == nullptr ? "" : tensor, {samples, count}, values, type, strides);
  });
}

int batchfs_writer_remaining(batchfs_writer* writer, int64_t* batches, size_t capacity,
                             size_t* count, char* error) {
  return guarded(error, [&] { give(output_of(writer).remaining(), batches, capacity, count); });
}

int batchfs_writer_batch_samples(batchfs_writer* writer, int64_t batch, int64_t* samples,
                                 size_t capacity, size_t* count, char* error) {
  return guarded(error,
                 [&] { give(output_of(writer).batch_samples(batch), samples, capacity, count); });
}

int batchfs_writer_shape(batchfs_writer* writer, const char* tensor, const int64_t* samples,
                         size_t samples_count, int64_t* shape, size_t capacity, size_t* count,
                         char* error) {
  return guarded(error, [&] {
    if (samples == nullptr && samples_count > 0)
      throw invalid("the numbers of the samples are needed");
    give(output_of(writer).shape(tensor == nullptr ? "" : tensor, {samples, samples_count}), shape,
         capacity, count);
  });
}

int batchfs_writer_samples(batchfs_writer* writer, int64_t* samples, size_t capacity, size_t* count,
                           char* error) {
  return guarded(error,
                 [&] { give(output_of(writer).samples().numbers, samples, capacity, count); });
}

int batchfs_writer_starts(batchfs_writer* writer, int64_t* starts, size_t capacity, size_t* count,
                          char* error) {
  return guarded(error, [&] { give(output_of(writer).samples().starts, starts, capacity, count); });
}

int batchfs_writer_done(batchfs_writer* writer, uint8_t* done, size_t capacity, size_t* count,
                        char* error) {
  return guarded(error, [&] { give(output_of(writer).done(), done, capacity, count); });
}

int batchfs_writer_describe(batchfs_writer* writer, char* text, size_t capacity, size_t* size,
                            char* error) {
  return guarded(error, [&] {
    if (size == nullptr || (text == nullptr && capacity > 0))
      throw invalid("a place for the text and its size is needed");
    const std::string described = output_of(writer).description().dump();
    if (described.size() < capacity) std::memcpy(text, described.c_str(), described.size() + 1);
    *size = described.size();
  });
}

int batchfs_writer_missing(batchfs_writer* writer, uint64_t* samples, char* error) {
  return guarded(error, [&] {
    if (samples == nullptr) throw invalid("a place for the number is needed");
    *samples = output_of(writer).missing();
  });
}

int batchfs_writer_finished(batchfs_writer* writer) {
  int finished = 0;
  return guarded(nullptr, [&] { finished = output_of(writer).finished() ? 1 : 0; }) == 0 ? finished
                                                                                         : 0;
}

int batchfs_writer_close(batchfs_writer* writer, char* error) {
  return guarded(error, [&] { output_of(writer).close(); });
}

int batchfs_writer_suspend(batchfs_writer* writer, char* error) {
  return guarded(error, [&] { output_of(writer).suspend(); });
}

void batchfs_writer_free(batchfs_writer* writer) { delete writer; }
