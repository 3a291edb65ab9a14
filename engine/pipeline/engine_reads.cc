// Reads of arrays, and of batches by who may wait.

#include <future>

#include "engine/pipeline/boxes.h"
#include "engine/pipeline/engine.h"

namespace batchfs {

std::shared_ptr<const Batch> Engine::open(const BatchRequest& request) {
  // Shared: the worker is still inside of set_value() when this thread goes on.
  const auto promise = std::make_shared<std::promise<std::shared_ptr<const Batch>>>();
  open(request, [promise](std::shared_ptr<const Batch> batch, std::exception_ptr error) {
    if (error) promise->set_exception(error);
    else promise->set_value(std::move(batch));
  });
  return promise->get_future().get();
}

void Engine::read_box(const std::shared_ptr<const Array>& array, const Box& box,
                      std::shared_ptr<const Converter> converter, std::byte* out, const Dims& strides,
                      std::shared_ptr<void> memory, ReadDone done) {
  auto assembly = std::make_shared<Assembly>();
  add_box(*assembly, array, box, converter.get(), out, strides);
  struct Memory {
    std::shared_ptr<const Converter> converter;
    std::shared_ptr<void> memory;
  };
  assembly->memory = std::make_shared<Memory>(Memory{std::move(converter), std::move(memory)});
  assembly->finished = std::move(done);
  scheduler_.submit(assembly);
}

void Engine::read_box(const std::shared_ptr<const Array>& array, const Box& box,
                      std::shared_ptr<const Converter> converter, std::byte* out,
                      const Dims& strides) {
  const auto promise = std::make_shared<std::promise<void>>();
  read_box(array, box, std::move(converter), out, strides, nullptr, [promise](std::exception_ptr error) {
    if (error) promise->set_exception(error);
    else promise->set_value();
  });
  promise->get_future().get();
}

void Engine::read_elements(const std::shared_ptr<const Array>& array, std::int64_t first,
                           std::int64_t count, std::byte* out, std::shared_ptr<void> memory,
                           ReadDone done) {
  auto assembly = std::make_shared<Assembly>();
  const std::int64_t itemsize = array->type().itemsize;
  for (const Box& box : boxes_of_run(array->shape(), first, count)) {
    add_box(*assembly, array, box, nullptr, out, c_strides(box.shape, itemsize));
    out += box.elements() * itemsize;
  }
  // Several boxes of a run can touch one chunk; each chunk must be used once, so that it is decoded once
  // even when it is too large to be kept.
  merge_uses(*assembly);
  struct Memory {
    std::shared_ptr<void> memory;
    Budget::Reservation reservation;
  };
  // As large as the kernel's requests, and as many as there are readers: granted at once.
  assembly->memory = std::make_shared<Memory>(
      Memory{std::move(memory), budget_.reserve(static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(itemsize))});
  const auto shared = std::make_shared<ReadDone>(std::move(done));
  const WaiterId id = begin_read([shared](std::exception_ptr error) { (*shared)(error); }, assembly);
  if (id == 0) return;
  assembly->finished = [this, id, shared](std::exception_ptr error) {
    if (!end_read(id)) return;
    if (!error) note_served();
    (*shared)(error);
  };
  scheduler_.submit(assembly);
}

void Engine::read_ahead(const std::shared_ptr<const Array>& array, std::int64_t first,
                        std::int64_t count) {
  if (array->chain().is_plain()) return;  // read in place, nothing to decode: the page cache does it
  for (const Box& box : boxes_of_run(array->shape(), first, count))
    for_each_chunk(array->grid(), box, [&](std::int64_t chunk, const Box&, const Dims&) {
      scheduler_.warm(array, chunk);
    });
}

}  // namespace batchfs
