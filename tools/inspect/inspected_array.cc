#include "tools/inspect/inspected_array.h"

#include <atomic>
#include <thread>

#include "engine/array/string_array.h"
#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/dataset/fields.h"
#include "tools/cli/progress.h"
#include "tools/inspect/stored_size.h"

namespace batchfs {

namespace {

constexpr std::size_t kMaxRanges = 64;
constexpr std::size_t kRangeThreads = 16;
constexpr std::chrono::milliseconds kQuickly{500};
constexpr std::int64_t kQuickObjects = 30'000;  // of one array
constexpr int kSizeThreads = 32;                // of remote stores

/// Sets the members that follow from the metadata alone. Throws if values cannot be read, with the
/// reason.
void examine_chunks(const OpenedStore& opened, const std::shared_ptr<const ArrayMetadata>& metadata,
                    InspectedArray& entry) {
  entry.dims = dimension_names(*metadata);
  entry.grid = ChunkGrid(metadata->shape, metadata->chunk_shape);
  if (!metadata->type.is_variable()) {
    Dims all = metadata->shape;
    all.push_back(metadata->type.itemsize);
    entry.bytes = static_cast<std::uint64_t>(element_count(all));
  }
  if (!entry.unsupported.empty()) return;
  if (metadata->type.is_variable()) {
    StringArray(opened.store, metadata);
    return;
  }
  auto array = std::make_shared<const Array>(opened.store, metadata);
  entry.grid = array->grid();
  entry.sharded = array->is_sharded();
  if (entry.is_coordinate()) entry.array = std::move(array);
}

/// The coordinate as a variable of a dataset, with everything needed to read it.
Variable variable_of(const InspectedArray& entry) {
  Variable variable;
  variable.name = entry.name;
  variable.metadata = std::shared_ptr<const ArrayMetadata>(entry.array, entry.metadata);
  variable.array = entry.array;
  variable.dims = entry.dims;
  variable.shape = entry.metadata->shape;
  variable.cf = *entry.cf;
  return variable;
}

/// Values are not part of the metadata: the rest is shown without those that cannot be read.
void read_range(InspectedArray& coordinate) {
  try {
    coordinate.range = coordinate_range(variable_of(coordinate));
  } catch (...) {
    coordinate.unreadable = error_of(std::current_exception()).what();
  }
}

}  // namespace

std::string InspectedArray::attribute(const char* key) const {
  if (!metadata->attributes.is_object()) return {};
  const auto found = metadata->attributes.find(key);
  if (found == metadata->attributes.end() || !found->is_string()) return {};
  return printable(found->get<std::string>().substr(0, 200));
}

const DataType& InspectedArray::type() const {
  return range ? range->type : cf ? cf->decoded : metadata->type;
}

InspectedArray inspect_array(const OpenedStore& opened, const ArrayMetadata& metadata) {
  const std::string& path = metadata.path;
  InspectedArray entry{};
  entry.metadata = &metadata;
  entry.name = path.empty() ? "values" : path.substr(path.rfind('/') + 1);
  entry.unsupported = metadata.unsupported;
  try {
    examine_chunks(opened, std::shared_ptr<const ArrayMetadata>(opened.hierarchy, &metadata),
                   entry);
  } catch (const Error& error) {
    // Metadata that are not supported say why themselves; what else does not fit follows from it.
    if (entry.unsupported.empty()) entry.unsupported = error.why();
  }
  if (!entry.unsupported.empty()) return entry;
  for (const auto& [ending, field] : field_variables(metadata))
    entry.fields.emplace_back(entry.name + ending, field.type.name());
  if (metadata.type.is_variable()) return entry;
  try {
    entry.cf = cf_decoding(metadata);
  } catch (const Error& error) {
    entry.undecoded = error.why();
  }
  return entry;
}

void read_ranges(std::vector<InspectedArray>& arrays) {
  std::vector<InspectedArray*> coordinates;
  for (InspectedArray& entry : arrays)
    if (entry.array != nullptr && entry.cf && coordinates.size() < kMaxRanges)
      coordinates.push_back(&entry);
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i; (i = next++) < coordinates.size();) read_range(*coordinates[i]);
  };
  std::vector<std::thread> workers;
  while (workers.size() + 1 < std::min(kRangeThreads, coordinates.size())) {
    try {
      workers.emplace_back(work);
    } catch (const std::exception&) {
      break;  // fewer threads do as well
    }
  }
  work();
  for (std::thread& worker : workers) worker.join();
}

void measure_stored(Store& store, std::vector<InspectedArray>& arrays, Measure which) {
  if (which == Measure::all && !store.can_list())
    throw Error(ErrorCode::not_supported,
                "--size lists the objects of the store, which this server cannot do", store.url());
  if (which == Measure::quickly && !store.is_local()) return;
  using Clock = std::chrono::steady_clock;
  const auto deadline = which == Measure::all ? Clock::time_point::max() : Clock::now() + kQuickly;
  Progress progress("Sizes");
  for (std::size_t i = 0; i < arrays.size() && Clock::now() < deadline; ++i) {
    InspectedArray& entry = arrays[i];
    if (which == Measure::all) progress.show(static_cast<std::int64_t>(i), std::ssize(arrays));
    try {
      const ChunkGrid objects(entry.metadata->shape, entry.metadata->chunk_shape);
      if (which == Measure::quickly && objects.chunk_count() > kQuickObjects) continue;
    } catch (const Error&) {
      continue;  // its metadata makes no sense
    }
    entry.stored =
        stored_size(store, entry.metadata->path, deadline, store.is_local() ? 1 : kSizeThreads);
  }
}

}  // namespace batchfs
