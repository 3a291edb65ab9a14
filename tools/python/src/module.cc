// The Python interface of the reader: batchfs._core. Users see batchfs/__init__.py.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "engine/base/error.h"
#include "gpu/reader/reader.h"
#include "tools/python/src/tensor.h"

namespace batchfs::python {

namespace {

using namespace nb::literals;

/// Held as Python objects hold them.
struct BatchView {
  std::shared_ptr<const reader::Batch> batch;
};
struct ReaderView {
  std::shared_ptr<reader::Reader> reader;
};

const char* class_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "InvalidArgument";
    case ErrorCode::not_found:
      return "NotFound";
    case ErrorCode::no_memory:
      return "NoMemory";
    case ErrorCode::not_supported:
      return "NotSupported";
    default:
      return "Error";
  }
}

/// Blocking calls let signal handlers run; a handler's exception ends the call.
bool signal_raised() {
  const nb::gil_scoped_acquire acquire;
  return PyErr_CheckSignals() != 0;
}

ReaderView open(std::string place, std::optional<std::string> view, std::int64_t rank,
                std::int64_t world, std::uint32_t ahead, std::string mode,
                std::optional<std::string> device, std::uint64_t device_memory) {
  const nb::gil_scoped_release release;
  return {reader::Reader::open({.place = std::move(place),
                                .view = view.value_or(""),
                                .rank = rank,
                                .world = world,
                                .ahead = ahead,
                                .mode = std::move(mode),
                                .device = device ? reader::Device::open(*device) : nullptr,
                                .device_memory = device_memory,
                                .interrupted = signal_raised})};
}

void start(const ReaderView& self, std::int64_t epoch, std::int64_t done, std::int64_t worker,
           std::int64_t workers) {
  const nb::gil_scoped_release release;
  self.reader->start({epoch, done, worker, workers});
}

std::optional<BatchView> next(const ReaderView& self) {
  std::shared_ptr<reader::Batch> batch;
  {
    const nb::gil_scoped_release release;
    batch = self.reader->next();
  }
  if (batch == nullptr) return std::nullopt;
  return BatchView{std::move(batch)};
}

BatchView get(const ReaderView& self, std::int64_t epoch, std::int64_t number) {
  const nb::gil_scoped_release release;
  return {self.reader->get(epoch, number)};
}

nb::tuple names(const BatchView& self) {
  nb::list list;
  for (const reader::Tensor& tensor : self.batch->tensors) list.append(tensor.info->name);
  return nb::tuple(list);
}

/// Every tensor's.
nb::dict all_taken_by(const BatchView& self, nb::handle take, nb::handle current_stream) {
  nb::dict taken;
  for (const reader::Tensor& tensor : self.batch->tensors)
    taken[tensor.info->name.c_str()] = taken_by({self.batch, &tensor}, take, current_stream);
  return taken;
}

/// Sample numbers and windows, as 64-bit integers.
nb::bytes windows(const BatchView& self) {
  const reader::Windows::Values* values = nullptr;
  {
    const nb::gil_scoped_release release;  // it may read a file
    values = &reader::windows_of(*self.batch);
  }
  return nb::bytes(values->data(), values->size() * sizeof values->front());
}

/// The typestr and the values of the schema's coordinate `number`.
nb::tuple coordinate(const ReaderView& self, std::size_t number) {
  const auto& known = self.reader->schema().coordinates;
  if (self.reader->coordinates() == nullptr || number >= known.size())
    throw Error(ErrorCode::not_supported,
                "the batchfs process is of a version that does not send coordinates");
  std::span<const std::byte> values;
  {
    const nb::gil_scoped_release release;
    values = self.reader->coordinates()->values(number);
  }
  return nb::make_tuple(known[number].dtype.typestr, nb::bytes(values.data(), values.size()));
}

std::optional<TensorView> tensor(const BatchView& self, std::string_view name) {
  for (const reader::Tensor& one : self.batch->tensors)
    if (one.info->name == name) return TensorView{self.batch, &one};
  return std::nullopt;
}

}  // namespace

NB_MODULE(_core, module) {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::interrupted && PyErr_Occurred()) return;
      const nb::object type = nb::module_::import_("batchfs._errors").attr(class_of(error.code()));
      PyErr_SetString(type.ptr(), error.what());
    }
  });

  bind_tensor(module);
  nb::class_<BatchView>(module, "Batch")
      .def_prop_ro("epoch", [](const BatchView& self) { return self.batch->epoch; })
      .def_prop_ro("number", [](const BatchView& self) { return self.batch->number; })
      .def_prop_ro("samples", [](const BatchView& self) { return self.batch->samples; })
      .def_prop_ro("device", [](const BatchView& self) { return number_of(*self.batch); })
      .def_prop_ro("names", names)
      .def("windows", windows)
      .def("taken_by", all_taken_by, "take"_a, "current_stream"_a.none())
      .def("tensor", tensor, "name"_a);
  nb::class_<ReaderView>(module, "Reader")
      .def_prop_ro("schema_json",
                   [](const ReaderView& self) { return self.reader->schema().schema_json; })
      .def_prop_ro("view_json",
                   [](const ReaderView& self) { return self.reader->schema().view_json; })
      .def("coordinate", coordinate, "number"_a)
      .def_prop_ro("mode", [](const ReaderView& self) { return self.reader->mode(); })
      .def_prop_ro("is_outdated", [](const ReaderView& self) { return self.reader->is_outdated(); })
      .def_prop_ro("why_copied", [](const ReaderView& self) { return self.reader->why_copied(); })
      .def_prop_ro("why_files", [](const ReaderView& self) { return self.reader->why_files(); })
      .def(
          "count",
          [](const ReaderView& self, std::int64_t done, std::int64_t worker, std::int64_t workers) {
            return self.reader->count({0, done, worker, workers});
          },
          "done"_a = 0, "worker"_a = 0, "workers"_a = 1)
      .def("start", start, "epoch"_a, "done"_a = 0, "worker"_a = 0, "workers"_a = 1)
      .def("left", [](const ReaderView& self) { return self.reader->left(); })
      .def("next", next)
      .def("get", get, "epoch"_a, "number"_a);
  module.def("open", open, "place"_a, "view"_a, "rank"_a, "world"_a, "ahead"_a, "mode"_a,
             "device"_a = nb::none(), "device_memory"_a = 0);
}

}  // namespace batchfs::python
