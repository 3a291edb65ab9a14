// The C interface over Reader: see batchfs_reader.h.

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "gpu/reader/batchfs_reader.h"
#include "gpu/reader/reader.h"

using batchfs::Error;
using batchfs::ErrorCode;

struct batchfs_reader {
  std::shared_ptr<batchfs::reader::Reader> reader;
};

struct batchfs_batch {
  std::shared_ptr<batchfs::reader::Batch> batch;
  std::vector<std::vector<std::int64_t>> strides;  // bytes, of each tensor
};

namespace {

/// The text of batchfs_error(): C has no exceptions to carry it.
thread_local std::string last_error;

/// Runs `body`; turns its exceptions into an errno and a text.
template <class Body>
int guarded(Body&& body) {
  try {
    body();
    return 0;
  } catch (const Error& error) {
    last_error = error.what();
    return batchfs::to_errno(error.code());
  } catch (const std::bad_alloc&) {
    last_error = "out of memory";
    return ENOMEM;
  } catch (const std::exception& error) {
    last_error = error.what();
    return EIO;
  }
}

/// Size of each struct's first version: a caller that passes less did not set the size.
constexpr std::size_t kFirstOptions = offsetof(batchfs_options, device);
constexpr std::size_t kFirstTensor =
    offsetof(batchfs_tensor, device_number) + sizeof(batchfs_tensor::device_number);
constexpr std::size_t kFirstInfo =
    offsetof(batchfs_batch_info, tensors) + sizeof(batchfs_batch_info::tensors);

/// Copies `all` to a struct of the size that the caller was compiled with.
template <class Struct>
void give(const Struct& all, std::size_t first, const char* name, Struct* out) {
  if (out == nullptr || out->size < first)
    throw Error(ErrorCode::invalid_argument, std::string(name) + "::size is not set");
  const std::size_t size = out->size;
  std::memset(static_cast<void*>(out), 0, size);
  std::memcpy(static_cast<void*>(out), &all, std::min(size, sizeof all));
  out->size = size;
}

batchfs_batch* held(std::shared_ptr<batchfs::reader::Batch> batch) {
  auto made = std::make_unique<batchfs_batch>();
  for (const auto& tensor : batch->tensors) {
    std::vector<std::int64_t> strides(tensor.shape.size());
    std::int64_t unit = tensor.info->dtype.itemsize;
    for (std::size_t d = strides.size(); d-- > 0;) {
      strides[d] = unit;
      unit *= std::max<std::int64_t>(tensor.shape[d], 1);
    }
    made->strides.push_back(std::move(strides));
  }
  made->batch = std::move(batch);
  return made.release();
}

void describe(const batchfs_batch& batch, std::size_t t, batchfs_tensor* out) {
  const batchfs::reader::Tensor& tensor = batch.batch->tensors[t];
  const batchfs_tensor all{
      .size = sizeof all,
      .name = tensor.info->name.c_str(),
      .dtype = tensor.info->dtype.name.c_str(),
      .itemsize = tensor.info->dtype.itemsize,
      .dlpack_code = tensor.info->dtype.dlpack_code,
      .ndim = static_cast<std::int32_t>(tensor.shape.size()),
      .shape = tensor.shape.data(),
      .strides = batch.strides[t].data(),
      .data = tensor.data,
      .nbytes = tensor.bytes,
      .dlpack_device = batch.batch->device != nullptr ? 2 : 1,
      .device_number = batch.batch->device != nullptr ? batch.batch->device->number() : 0};
  give(all, kFirstTensor, "batchfs_tensor", out);
}

}  // namespace

const char* batchfs_error(void) { return last_error.c_str(); }

int batchfs_open(const char* place, const batchfs_options* options, batchfs_reader** reader) {
  return guarded([&] {
    if (place == nullptr || reader == nullptr)
      throw Error(ErrorCode::invalid_argument, "a place and a reader are needed");
    *reader = nullptr;
    batchfs::reader::ReaderOptions wanted{.place = place};
    if (options != nullptr) {
      if (options->size < kFirstOptions)
        throw Error(ErrorCode::invalid_argument, "batchfs_options::size is not set");
      if (options->view != nullptr) wanted.view = options->view;
      wanted.rank = options->rank;
      wanted.world = options->world == 0 ? 1 : options->world;
      if (options->prefetch != 0) wanted.ahead = options->prefetch;
      if (options->mode != nullptr) wanted.mode = options->mode;
      const char* device =
          options->size >= offsetof(batchfs_options, device_memory) ? options->device : nullptr;
      if (options->size >= sizeof *options) wanted.device_memory = options->device_memory;
      if (device != nullptr && std::string_view(device) != "cpu")
        wanted.device = batchfs::reader::Device::open(device);
    }
    *reader = new batchfs_reader{batchfs::reader::Reader::open(std::move(wanted))};
  });
}

void batchfs_close(batchfs_reader* reader) { delete reader; }

const char* batchfs_schema(const batchfs_reader* reader) {
  return reader->reader->schema().schema_json.c_str();
}

int64_t batchfs_batches(const batchfs_reader* reader) { return reader->reader->schema().batches; }

int64_t batchfs_rank_batches(const batchfs_reader* reader, int64_t done) {
  return batchfs::reader::rank_batches(reader->reader->schema(), done, reader->reader->rank(),
                                       reader->reader->world());
}

const char* batchfs_mode(batchfs_reader* reader) {
  const std::string mode = reader->reader->mode();
  return mode == "client"   ? "client"
         : mode == "server" ? "server"
         : mode == "shm"    ? "shm"
         : mode == "files"  ? "files"
                            : "none";
}

const char* batchfs_why_copied(batchfs_reader* reader) {
  static thread_local std::string why;
  why = reader->reader->why_copied();
  return why.c_str();
}

int batchfs_start(batchfs_reader* reader, int64_t epoch, int64_t done) {
  return guarded([&] { reader->reader->start({epoch, done}); });
}

int batchfs_next(batchfs_reader* reader, batchfs_batch** batch) {
  return guarded([&] {
    *batch = nullptr;
    if (auto next = reader->reader->next()) *batch = held(std::move(next));
  });
}

int batchfs_get(batchfs_reader* reader, int64_t epoch, int64_t number, batchfs_batch** batch) {
  return guarded([&] {
    *batch = nullptr;
    *batch = held(reader->reader->get(epoch, number));
  });
}

int batchfs_info(const batchfs_batch* batch, batchfs_batch_info* info) {
  return guarded([&] {
    const batchfs_batch_info all{
        .size = sizeof all,
        .epoch = batch->batch->epoch,
        .number = batch->batch->number,
        .samples = batch->batch->samples,
        .tensors = static_cast<std::int64_t>(batch->batch->tensors.size())};
    give(all, kFirstInfo, "batchfs_batch_info", info);
  });
}

int batchfs_get_tensor(const batchfs_batch* batch, const char* name, batchfs_tensor* tensor) {
  return guarded([&] {
    for (std::size_t t = 0; t < batch->batch->tensors.size(); ++t)
      if (batch->batch->tensors[t].info->name == name) return describe(*batch, t, tensor);
    throw Error(ErrorCode::not_found, std::string("the view has no tensor '") + name + "'");
  });
}

int batchfs_tensor_at(const batchfs_batch* batch, int32_t position, batchfs_tensor* tensor) {
  return guarded([&] {
    if (position < 0 || static_cast<std::size_t>(position) >= batch->batch->tensors.size())
      throw Error(ErrorCode::not_found, "the view has no tensor " + std::to_string(position));
    describe(*batch, static_cast<std::size_t>(position), tensor);
  });
}

int batchfs_batch_samples(const batchfs_batch* batch, const int64_t** numbers) {
  return guarded([&] {
    if (numbers == nullptr)
      throw Error(ErrorCode::invalid_argument, "there is no place for the numbers");
    *numbers = batchfs::reader::windows_of(*batch->batch).data();
  });
}

int batchfs_batch_label(const batchfs_batch* batch, int64_t sample, const char* dim,
                        batchfs_label* label) {
  return guarded([&] {
    if (dim == nullptr) throw Error(ErrorCode::invalid_argument, "a dimension is needed");
    const batchfs::reader::Label found = batchfs::reader::label_of(*batch->batch, sample, dim);
    const bool is_number = found.type == batchfs::reader::Label::Type::number;
    const batchfs_label all{
        .size = sizeof all,
        .type = static_cast<std::int32_t>(found.type),
        .integer = found.integer,
        .number = is_number ? found.number : static_cast<double>(found.integer)};
    give(all, sizeof all, "batchfs_label", label);
  });
}

void batchfs_release(batchfs_batch* batch) { delete batch; }

void batchfs_release_after(batchfs_batch* batch, void* stream) {
  if (batch != nullptr && batch->batch->use != nullptr)
    batch->batch->use->note(reinterpret_cast<std::uintptr_t>(stream));
  delete batch;
}
