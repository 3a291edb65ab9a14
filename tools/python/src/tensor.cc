#include "tools/python/src/tensor.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include "tools/python/src/dlpack.h"

namespace batchfs::python {

namespace {

constexpr const char* kCapsule = "dltensor";
constexpr const char* kVersionedCapsule = "dltensor_versioned";

/// A capsule's tensor and the arrays it points to, in one allocation.
template <class M>
struct Held : M {
  std::shared_ptr<const reader::Batch> batch;
  std::unique_ptr<std::byte[]> copy;
  std::vector<std::int64_t> shape_and_strides;
};

std::vector<std::int64_t> strides_of(const std::vector<std::int64_t>& shape, std::int64_t unit) {
  std::vector<std::int64_t> strides(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    strides[d] = unit;
    unit *= std::max<std::int64_t>(shape[d], 1);
  }
  return strides;
}

template <class M>
void delete_managed(M* managed) {
  delete static_cast<Held<M>*>(managed);
}

/// Frees a capsule that nobody consumed.
template <class M>
void drop_capsule(PyObject* capsule, const char* name) {
  if (!PyCapsule_IsValid(capsule, name)) return;
  auto* managed = static_cast<M*>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}

dlpack::Device device_of(const TensorView& view) {
  return view.batch->device != nullptr ? dlpack::Device{dlpack::kCuda, view.batch->device->number()}
                                       : dlpack::Device{dlpack::kHost, 0};
}

/// Notes the stream that a consumer reads on, as the array API passes it: the batch is complete, so
/// nothing waits now, but its memory is released after the stream's work with it.
void note_stream(const TensorView& view, nb::handle stream) {
  if (view.batch->use == nullptr) {
    if (!stream.is_none() && !(nb::isinstance<nb::int_>(stream) && nb::cast<long>(stream) == -1))
      throw nb::buffer_error("tensors in host memory have no stream");
    return;
  }
  std::uintptr_t number = 1;
  if (!stream.is_none()) {
    const auto given = nb::cast<long long>(stream);
    if (given == 0 || given < -1)
      throw nb::buffer_error("the stream 0 is ambiguous: it is 1, 2, a cudaStream_t or -1");
    number = given == -1 ? reader::StreamUse::kAny : static_cast<std::uintptr_t>(given);
  }
  view.batch->use->note(number);
}

template <class M>
M* managed_of(const TensorView& view, bool copy) {
  const reader::Dtype& dtype = view.dtype();
  auto held = std::make_unique<Held<M>>();
  const std::size_t dims = view.tensor->shape.size();
  held->shape_and_strides.reserve(2 * dims);
  held->shape_and_strides = view.tensor->shape;
  for (const std::int64_t stride : strides_of(view.tensor->shape, 1))
    held->shape_and_strides.push_back(stride);
  void* data = const_cast<void*>(view.data());
  if (copy) {
    held->copy.reset(new std::byte[view.tensor->bytes + 1]);
    std::memcpy(held->copy.get(), data, view.tensor->bytes);
    data = held->copy.get();
  } else {
    held->batch = view.batch;
  }
  held->tensor = {data,
                  device_of(view),
                  static_cast<std::int32_t>(dims),
                  {static_cast<std::uint8_t>(dtype.dlpack_code),
                   static_cast<std::uint8_t>(dtype.dlpack_bits), 1},
                  held->shape_and_strides.data(),
                  held->shape_and_strides.data() + dims,
                  0};
  held->context = nullptr;
  held->deleter = delete_managed<M>;
  return held.release();
}

template <class M>
nb::object capsule_of(M* managed, const char* name, PyCapsule_Destructor drop) {
  PyObject* capsule = PyCapsule_New(managed, name, drop);
  if (capsule == nullptr) {
    managed->deleter(managed);
    throw nb::python_error();
  }
  return nb::steal(capsule);
}

/// The unversioned capsule cannot mark memory as read-only. A consumer that writes changes a
/// private copy of the page.
nb::object unversioned(const TensorView& view, bool copied) {
  return capsule_of(managed_of<dlpack::Managed>(view, copied), kCapsule,
                    [](PyObject* object) { drop_capsule<dlpack::Managed>(object, kCapsule); });
}

nb::object dlpack(const TensorView& view, nb::handle stream,
                  std::optional<std::pair<int, int>> max_version,
                  std::optional<std::pair<int, int>> device, std::optional<bool> copy) {
  if (view.dtype().dlpack_code < 0)
    throw nb::buffer_error(
        ("DLPack has no type for " + view.dtype().name + "; .numpy() has").c_str());
  const dlpack::Device at = device_of(view);
  if (device && (device->first != at.type || device->second != at.id))
    throw nb::buffer_error("the tensor is on another device; copy it there");
  const bool copied = copy.value_or(false);
  if (copied && at.type != dlpack::kHost)
    throw nb::buffer_error("a tensor on a GPU is not copied here; copy what you take");
  note_stream(view, stream);
  if (!max_version || max_version->first < 1) return unversioned(view, copied);
  auto* managed = managed_of<dlpack::ManagedVersioned>(view, copied);
  managed->version = {1, 1};
  managed->flags = copied ? dlpack::kIsCopied : dlpack::kReadOnly;
  return capsule_of(managed, kVersionedCapsule, [](PyObject* object) {
    drop_capsule<dlpack::ManagedVersioned>(object, kVersionedCapsule);
  });
}

/// The struct module's letter; null for types without one.
const char* buffer_format(const reader::Dtype& dtype) {
  static constexpr struct {
    const char *typestr, *format;
  } kFormats[] = {{"|b1", "?"}, {"|i1", "b"}, {"<i2", "h"},  {"<i4", "i"},  {"<i8", "q"},
                  {"|u1", "B"}, {"<u2", "H"}, {"<u4", "I"},  {"<u8", "Q"},  {"<f2", "e"},
                  {"<f4", "f"}, {"<f8", "d"}, {"<c8", "Zf"}, {"<c16", "Zd"}};
  for (const auto& entry : kFormats)
    if (dtype.typestr == entry.typestr) return entry.format;
  return nullptr;
}

int get_buffer(PyObject* exporter, Py_buffer* buffer, int flags) {
  const auto* view = nb::inst_ptr<TensorView>(exporter);
  buffer->obj = nullptr;
  if (view->batch->device != nullptr) {
    PyErr_SetString(PyExc_BufferError, "the tensor is on a GPU; .numpy() copies it");
    return -1;
  }
  const char* format = buffer_format(view->dtype());
  if (format == nullptr) {
    PyErr_Format(PyExc_BufferError, "the buffer protocol has no type for %s; .numpy() has",
                 view->dtype().name.c_str());
    return -1;
  }
  if ((flags & PyBUF_WRITABLE) != 0) {
    PyErr_SetString(PyExc_BufferError,
                    "batches are shared and read-only; copy what is to be changed");
    return -1;
  }
  const std::size_t ndim = view->tensor->shape.size();
  auto* dims = static_cast<Py_ssize_t*>(std::malloc((2 * ndim + 1) * sizeof(Py_ssize_t)));
  if (dims == nullptr) {
    PyErr_NoMemory();
    return -1;
  }
  const std::vector<std::int64_t> strides = strides_of(view->tensor->shape, view->dtype().itemsize);
  for (std::size_t d = 0; d < ndim; ++d) {
    dims[d] = view->tensor->shape[d];
    dims[ndim + d] = strides[d];
  }
  buffer->buf = const_cast<void*>(view->data());
  buffer->len = static_cast<Py_ssize_t>(view->tensor->bytes);
  buffer->readonly = 1;
  buffer->itemsize = view->dtype().itemsize;
  buffer->format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(format) : nullptr;
  buffer->ndim = static_cast<int>(ndim);
  buffer->shape = (flags & PyBUF_ND) != 0 ? dims : nullptr;
  buffer->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? dims + ndim : nullptr;
  buffer->suboffsets = nullptr;
  buffer->internal = dims;
  Py_INCREF(exporter);
  buffer->obj = exporter;
  return 0;
}

void release_buffer(PyObject*, Py_buffer* buffer) { std::free(buffer->internal); }

PyType_Slot kSlots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                        {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
                        {0, nullptr}};

nb::dict array_interface(const TensorView& view) {
  nb::dict interface;
  interface["version"] = 3;
  interface["typestr"] = view.dtype().typestr;
  interface["shape"] = tuple_of(view.tensor->shape);
  interface["data"] = nb::make_tuple(reinterpret_cast<std::uintptr_t>(view.data()), true);
  interface["strides"] = nb::none();
  return interface;
}

nb::dict host_interface(const TensorView& view) {
  if (view.batch->device != nullptr)
    throw nb::attribute_error("__array_interface__: the tensor is on a GPU; .numpy() copies it");
  return array_interface(view);
}

/// Numba's interface, version 3. It does not report the consumer's stream: any may read.
nb::dict cuda_interface(const TensorView& view) {
  if (view.batch->device == nullptr)
    throw nb::attribute_error("__cuda_array_interface__: the tensor is in host memory");
  view.batch->use->note(reader::StreamUse::kAny);
  nb::dict interface = array_interface(view);
  interface["stream"] = nb::none();
  return interface;
}

/// Fills a writable buffer of the tensor's size.
void copy_to(const TensorView& view, nb::handle target) {
  Py_buffer buffer;
  if (PyObject_GetBuffer(target.ptr(), &buffer, PyBUF_WRITABLE) != 0) throw nb::python_error();
  struct Release {
    Py_buffer& buffer;
    ~Release() { PyBuffer_Release(&buffer); }
  } release{buffer};
  if (static_cast<std::uint64_t>(buffer.len) != view.tensor->bytes)
    throw nb::buffer_error("the buffer has another size");
  if (view.tensor->bytes == 0) return;
  const nb::gil_scoped_release others_run;
  if (view.batch->device != nullptr)
    view.batch->device->download(view.tensor->data,
                                 {static_cast<std::byte*>(buffer.buf), view.tensor->bytes});
  else
    std::memcpy(buffer.buf, view.tensor->data, view.tensor->bytes);
}

}  // namespace

const void* TensorView::data() const {
  alignas(64) static constexpr std::byte kNothing[64] = {};
  return tensor->data != nullptr || batch->device != nullptr
             ? static_cast<const void*>(tensor->data)
             : kNothing;
}

nb::object taken_by(const TensorView& view, nb::handle take, nb::handle current_stream) {
  if (view.dtype().dlpack_code < 0)
    throw nb::buffer_error(
        ("DLPack has no type for " + view.dtype().name + "; .numpy() has").c_str());
  if (view.batch->device != nullptr) {
    const auto stream = nb::cast<std::uintptr_t>(current_stream(view.batch->device->number()));
    view.batch->use->note(stream != 0 ? stream : 1);
  }
  return take(unversioned(view, false));
}

std::optional<int> number_of(const reader::Batch& batch) {
  return batch.device != nullptr ? std::optional(batch.device->number()) : std::nullopt;
}

nb::tuple tuple_of(const std::vector<std::int64_t>& numbers) {
  nb::list list;
  for (const std::int64_t n : numbers) list.append(n);
  return nb::tuple(list);
}

void bind_tensor(nb::module_& module) {
  nb::class_<TensorView>(module, "Tensor", nb::type_slots(kSlots), nb::is_weak_referenceable())
      .def_prop_ro("name", [](const TensorView& view) { return view.tensor->info->name; })
      .def_prop_ro("dtype", [](const TensorView& view) { return view.dtype().name; })
      .def_prop_ro("shape", [](const TensorView& view) { return tuple_of(view.tensor->shape); })
      .def_prop_ro("strides",
                   [](const TensorView& view) {
                     return tuple_of(strides_of(view.tensor->shape, view.dtype().itemsize));
                   })
      .def_prop_ro("dims",
                   [](const TensorView& view) {
                     nb::list dims;
                     for (const std::string& dim : view.tensor->info->dims) dims.append(dim);
                     return nb::tuple(dims);
                   })
      .def_prop_ro("nbytes", [](const TensorView& view) { return view.tensor->bytes; })
      .def_prop_ro("__array_interface__", host_interface)
      .def_prop_ro("__cuda_array_interface__", cuda_interface)
      .def_prop_ro("typestr", [](const TensorView& view) { return view.dtype().typestr; })
      .def("copy_to", copy_to)
      .def("__dlpack__", dlpack, nb::kw_only(), nb::arg("stream") = nb::none(),
           nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(),
           nb::arg("copy") = nb::none())
      .def_prop_ro("device", [](const TensorView& view) { return number_of(*view.batch); })
      .def("taken_by", taken_by, nb::arg("take"), nb::arg("current_stream").none())
      .def("__dlpack_device__", [](const TensorView& view) {
        const dlpack::Device at = device_of(view);
        return nb::make_tuple(at.type, at.id);
      });
}

}  // namespace batchfs::python
