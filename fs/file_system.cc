#include "fs/file_system.h"

#include <fmt/format.h>

#include "engine/base/json_text.h"
#include "engine/base/strings.h"
#include "engine/view/describe/resolved.h"
#include "engine/view/describe/schema.h"
#include "fs/control/status_texts.h"
#include "fs/formats/npy.h"
#include "fs/open_files.h"

namespace batchfs {

namespace {

std::vector<std::string> group_paths(const Hierarchy& hierarchy) {
  std::vector<std::string> paths;
  for (const auto& [path, group] : hierarchy.groups) paths.push_back(path);
  return paths;
}

/// Elements of the chunk that exist, as an array box.
Box chunk_box(const Array& array, std::int64_t chunk) {
  return array.grid().box(array.grid().chunk(chunk));
}

/// Texts with more bytes are not made just to get their length.
constexpr std::uint64_t kMaxSizedText = 1 << 20;

/// Reservations of a text: from the memory for texts, and from the engine's.
struct TextMemory {
  Budget::Reservation of_texts, of_all;
};

std::uint64_t bytes_of(const Dims& shape, const DataType& type) {
  return static_cast<std::uint64_t>(element_count(shape)) * type.itemsize;
}

}  // namespace

FileSystem::FileSystem(Options options, std::shared_ptr<Store> store,
                       std::shared_ptr<const Hierarchy> hierarchy,
                       std::shared_ptr<const Dataset> dataset,
                       std::vector<std::shared_ptr<const View>> views, Engine& engine, Log& log)
    : options_(std::move(options)),
      store_(std::move(store)),
      hierarchy_(std::move(hierarchy)),
      dataset_(std::move(dataset)),
      engine_(engine),
      log_(log),
      tree_([&] {
        std::vector<TreeArray> tree_arrays;
        for (const auto& [path, metadata] : hierarchy_->arrays) {
          ArrayEntry entry;
          entry.metadata = std::make_shared<ArrayMetadata>(metadata);
          entry.unsupported = metadata.unsupported;
          if (entry.unsupported.empty()) {
            try {
              // The dataset's own object where it has one: the cache knows chunks by it.
              const Variable* variable = dataset_->find(path);
              entry.array = variable != nullptr && variable->array != nullptr
                                ? variable->array
                                : std::make_shared<const Array>(store_, entry.metadata);
              entry.values_header = npy_header(metadata.type, metadata.shape);
            } catch (const Error& error) {
              entry.unsupported = error.what();
            }
          }
          tree_arrays.push_back(
              {path, entry.array ? std::optional(entry.array->grid()) : std::nullopt});
          if (entry.array) total_bytes_ += bytes_of(metadata.shape, metadata.type);
          arrays_.push_back(std::move(entry));
        }
        return Tree(group_paths(*hierarchy_), std::move(tree_arrays), std::move(views),
                    !options_.handoff_socket.empty(), options_.snapshot);
      }()),
      text_budget_(engine.budget().limit() / 2) {
  for (const ArrayEntry& entry : arrays_)
    if (!entry.unsupported.empty())
      log_.warning(
          fmt::format("{}: values cannot be read: {}", entry.metadata->path, entry.unsupported));
  for (const auto& [key, reason] : hierarchy_->problems)
    log_.warning(fmt::format("{}: not usable: {}", key, reason));
  for (const auto& [key, note] : hierarchy_->notes) log_.info(fmt::format("{}: {}", key, note));
}

FileSystem::~FileSystem() = default;

std::optional<FileSystem::Found> FileSystem::lookup(FileNumber parent,
                                                    std::string_view name) const {
  const std::optional<FileNumber> number = tree_.lookup(parent, name);
  return number ? attributes(*number) : std::nullopt;
}

std::optional<FileSystem::Found> FileSystem::attributes(FileNumber number) const {
  const std::optional<Node> node = tree_.node(number);
  if (!node) return std::nullopt;
  Found found{{.directory = tree_.is_directory(*node), .link = Tree::is_link(*node)}, number};
  found.control = node->kind == Node::Kind::control && !found.link;
  if (!found.directory) found.size = size_of(*node, number);
  if (node->kind == Node::Kind::array_values) found.block_size = Attributes::kLargeBlock;
  return found;
}

bool FileSystem::is_directory(FileNumber number) const {
  const std::optional<Node> node = tree_.node(number);
  return node && tree_.is_directory(*node);
}

void FileSystem::list(FileNumber directory, std::uint64_t offset, const Visit& visit) const {
  tree_.list(directory, offset,
             [&](const std::string& name, FileNumber number, std::uint64_t next) {
               return visit(name, number, tree_.is_directory(*tree_.node(number)), next);
             });
}

std::optional<std::string> FileSystem::link_target(FileNumber number) const {
  const std::optional<Node> node = tree_.node(number);
  if (!node || !Tree::is_link(*node)) return std::nullopt;
  return options_.handoff_socket;
}

BatchRequest FileSystem::request_of(const Node& node) const {
  const BatchSlot& slot = tree_.batch_tree(node.index).slots()[node.slot];
  return {tree_.views()[node.index],
          slot.format,
          node.epoch,
          node.item,
          node.rank,
          std::max<std::int64_t>(node.world, 1)};
}

std::uint64_t FileSystem::size_of(const Node& node, FileNumber number) const {
  switch (node.kind) {
    case Node::Kind::array_values: {
      const ArrayEntry& entry = arrays_[node.index];
      return entry.values_header.size() + bytes_of(entry.metadata->shape, entry.metadata->type);
    }
    case Node::Kind::chunk: {
      const Array& array = *arrays_[node.index].array;
      const Box box = chunk_box(array, node.item);
      return npy_header(array.type(), box.shape).size() + bytes_of(box.shape, array.type());
    }
    case Node::Kind::coordinate: {
      const NdArray& values =
          *tree_.views()[node.index]->coordinates()[static_cast<std::size_t>(node.item)].values;
      return npy_header(values.type, values.shape).size() + bytes_of(values.shape, values.type);
    }
    case Node::Kind::control:
      return Tree::is_link(node) ? options_.handoff_socket.size() : 0;
    case Node::Kind::batch: {
      const BatchSlot& slot = tree_.batch_tree(node.index).slots()[node.slot];
      if (slot.content == BatchSlot::Content::provenance) return provenance_size(node);
      if (slot.content == BatchSlot::Content::zarr_file) return zarr_file(node).size();
      const BatchRequest request = request_of(node);
      return request.format->layout(*request.view, request.global_batch()).files[slot.file].size;
    }
    default:
      return fixed_size(node, number);
  }
}

/// The size of a text that does not change while this lives.
std::uint64_t FileSystem::fixed_size(const Node& node, FileNumber number) const {
  const std::lock_guard lock(texts_mutex_);
  // Texts of arrays are short, and many.
  if (node.kind == Node::Kind::array_summary || node.kind == Node::Kind::array_metadata)
    return text_of(node).size();
  const auto [known, is_new] = sizes_.try_emplace(static_cast<std::uint64_t>(number), 0);
  if (is_new) known->second = text_of(node).size();
  return known->second;
}

std::unique_ptr<TextSource> FileSystem::provenance(const Node& node) const {
  const auto reserve = [this](std::uint64_t bytes) {
    TextMemory memory;
    memory.of_texts = text_budget_.try_reserve(bytes);
    if (!memory.of_texts) {
      cursors_->clear();
      memory.of_texts = reserve_for_list(text_budget_, bytes);
    }
    memory.of_all = engine_.hold(bytes);
    return std::make_shared<const TextMemory>(std::move(memory));
  };
  return tree_.batch_tree(node.index)
      .provenance(node.epoch, request_of(node).global_batch(), reserve);
}

ZarrBatchFile FileSystem::zarr_file(const Node& node) const {
  return tree_.batch_tree(node.index)
      .zarr_file(node.slot, node.epoch, request_of(node).global_batch());
}

/// 0 of a text that is too long to be made for its length alone.
std::uint64_t FileSystem::provenance_size(const Node& node) const {
  constexpr std::int64_t kMinRow = 16;  // bytes
  const BatchRequest request = request_of(node);
  if (request.view->row_count(request.global_batch()) >
      static_cast<std::int64_t>(kMaxSizedText) / kMinRow)
    return 0;
  return length_up_to(*provenance(node), kMaxSizedText).value_or(0);
}

MountState FileSystem::state() const {
  std::vector<std::shared_ptr<Store>> stores{store_};
  stores.insert(stores.end(), options_.other_stores.begin(), options_.other_stores.end());
  MountState state = read_mount_state(engine_, stores);
  state.passthrough = passthrough_;
  state.snapshot = options_.reading;
  if (options_.counts) {
    const Options::Counts counts = options_.counts();
    state.generations = counts.generations;
    state.kernel_names = counts.kernel_names;
  }
  state.uptime = Trace::now() - options_.started;
  if (options_.handoff_statistics) state.handoff = options_.handoff_statistics();
  return state;
}

StoreContents FileSystem::contents() const {
  return {options_.store_url, *hierarchy_, *dataset_, arrays_, tree_.views()};
}

std::string FileSystem::text_of(const Node& node) const {
  switch (node.kind) {
    case Node::Kind::root_summary:
      return store_summary(contents());
    case Node::Kind::store_json:
      return store_json(contents());
    case Node::Kind::array_summary:
      return array_summary(arrays_[node.index]);
    case Node::Kind::array_metadata:
      return json_text(arrays_[node.index].metadata->document) + "\n";
    case Node::Kind::view_json:
      return json_text(resolved_view(*tree_.views()[node.index])) + "\n";
    case Node::Kind::view_schema:
      return json_text(view_schema(*tree_.views()[node.index])) + "\n";
    default:
      throw Error(ErrorCode::internal, "not a text file");
  }
}

std::string FileSystem::control_text(ControlFile file) const {
  switch (file) {
    case ControlFile::status:
      return status_json(state());
    case ControlFile::metrics:
      return metrics_text(state());
    case ControlFile::trace:
      return recent_trace(engine_.trace(), options_.store_url);
    case ControlFile::config:
      return json_text(options_.config) + "\n";
    case ControlFile::log:
      return log_.text();
    case ControlFile::handoff:
      break;
  }
  throw Error(ErrorCode::internal, "not a text file");
}

std::shared_ptr<OpenFile> FileSystem::open_text(const Node& node) const {
  using enum OpenFile::Caching;
  if (node.kind == Node::Kind::control)
    return std::make_shared<TextFile>(control_text(static_cast<ControlFile>(node.index)), direct);
  if (node.kind == Node::Kind::coordinate) {
    const auto& view = tree_.views()[node.index];
    const NdArray& values = *view->coordinates()[static_cast<std::size_t>(node.item)].values;
    return std::make_shared<HeldFile>(npy_header(values.type, values.shape),
                                      std::span(values.data.data(), values.data.size()), view);
  }
  if (node.kind == Node::Kind::batch) return open_batch_text(node);
  const std::lock_guard lock(texts_mutex_);
  return std::make_shared<TextFile>(text_of(node), kernel);
}

std::shared_ptr<OpenFile> FileSystem::open_batch_text(const Node& node) const {
  using enum OpenFile::Caching;
  const BatchSlot& slot = tree_.batch_tree(node.index).slots()[node.slot];
  if (slot.content == BatchSlot::Content::provenance)
    return std::make_shared<StreamedFile>(
        cursors_, [this, node] { return provenance(node); },
        [this](std::function<void()> work) { engine_.post(kReaderWaits, std::move(work)); },
        provenance_size(node) == 0 ? direct : kernel);
  ZarrBatchFile file = zarr_file(node);
  if (file.values)
    return std::make_shared<CoordinateFile>(std::move(*file.values), tree_.views()[node.index]);
  return std::make_shared<TextFile>(std::move(file.text), kernel);
}

WaiterId FileSystem::open(FileNumber number, Files::OpenDone done) {
  // `done` is called outside of this: whatever it throws must not call it again.
  std::shared_ptr<OpenFile> file;
  std::exception_ptr error;
  try {
    const std::optional<Node> node = tree_.node(number);
    if (!node || tree_.is_directory(*node) || Tree::is_link(*node))
      throw Error(ErrorCode::not_found, "no such file");
    if (node->kind == Node::Kind::array_values) {
      const ArrayEntry& entry = arrays_[node->index];
      file = std::make_shared<ValuesFile>(engine_, entry.array, entry.values_header);
    } else if (node->kind == Node::Kind::chunk) {
      return open_chunk(*node, done);
    } else if (node->kind == Node::Kind::batch &&
               tree_.batch_tree(node->index).slots()[node->slot].content ==
                   BatchSlot::Content::tensor_file) {
      return open_batch(*node, done);
    } else {
      file = open_text(*node);
    }
  } catch (...) {
    error = std::current_exception();
  }
  done(std::move(file), error);
  return 0;
}

WaiterId FileSystem::open_batch(const Node& node, Files::OpenDone done) {
  const std::uint32_t file = tree_.batch_tree(node.index).slots()[node.slot].file;
  const BatchRequest request = request_of(node);
  const auto opened = [this, file, done = std::move(done)](std::shared_ptr<const Batch> batch,
                                                           std::exception_ptr error) {
    if (error) return done(nullptr, error);
    const MemoryFile* memory = &batch->files[file];
    engine_.counters().bytes_delivered += memory->size();
    done(std::make_shared<SealedFile>(memory, std::move(batch)), nullptr);
  };
  // noexcept: a batch that the engine has noted and not begun would be waited for.
  return [&]() noexcept { return engine_.open(request, opened); }();
}

WaiterId FileSystem::open_chunk(const Node& node, Files::OpenDone done) {
  const std::shared_ptr<const Array> array = arrays_[node.index].array;
  const Box box = chunk_box(*array, node.item);
  return engine_.arrays().open_box(
      array, box, npy_header(array->type(), box.shape),
      [done = std::move(done)](std::shared_ptr<const Batch> file, std::exception_ptr error) {
        if (error) return done(nullptr, error);
        const MemoryFile* memory = &file->files[0];
        done(std::make_shared<SealedFile>(memory, std::move(file)), nullptr);
      });
}

}  // namespace batchfs
