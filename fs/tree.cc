#include "fs/tree.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/view/spec.h"

namespace batchfs {

namespace {

constexpr FileNumber kEnd = FileNumber{1} << 127;
constexpr FileNumber kViews = FileNumber{1} << 100;
constexpr FileNumber kChunks = FileNumber{1} << 40;

/// "prefix" + a number printed with at least `width` digits, as this program prints it and in no
/// other way.
std::optional<std::int64_t> parse_numbered(std::string_view text, std::size_t width) {
  const std::size_t digits = text.size();
  if (digits < width) return std::nullopt;
  if (digits > width) {
    const auto number = parse_exact_number(text);
    if (!number || *number > INT64_MAX) return std::nullopt;
    return static_cast<std::int64_t>(*number);
  }
  std::int64_t number = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + (c - '0');
  }
  return number;
}

std::string epoch_name(std::int64_t epoch) { return fmt::format("epoch-{:04}", epoch); }

/// The file name of a slot directly below the epoch directory.
std::string batch_name(std::int64_t batch, const BatchSlot& slot) {
  return fmt::format("batch-{:06}{}", batch, slot.name);
}

}  // namespace

std::string chunk_file_stem(const Dims& chunk) {
  std::string name;
  for (std::int64_t i : chunk) name += (name.empty() ? "" : ".") + std::to_string(i);
  return name.empty() ? "0" : name;
}

FileNumber Tree::add(FileNumber parent, std::string name, Node node, bool listed) {
  fixed_.push_back({std::move(name), node, parent, listed, {}});
  const FileNumber number = fixed_.size();
  if (number != parent) fixed_[parent - 1].children.push_back(number);
  return number;
}

Tree::Tree(const std::vector<std::string>& groups, std::vector<TreeArray> arrays,
           std::vector<std::shared_ptr<const View>> views, bool handoff, const Json& snapshot)
    : arrays_(std::move(arrays)), views_(std::move(views)) {
  using enum Node::Kind;
  add(kRootIno, "", {directory});
  const FileNumber control_at = add(kRootIno, ".batchfs", {directory}, false);
  FileNumber last_common = control_at;
  for (std::uint32_t i = 0; i < std::size(kControlNames); ++i)
    if (i != static_cast<std::uint32_t>(ControlFile::handoff))
      last_common = add(control_at, std::string(kControlNames[i]), {control, i});
  if (last_common != kMaxCommonIno)
    throw Error(ErrorCode::internal, "the control files have other numbers than kMaxCommonIno");
  const FileNumber arrays_at = add(kRootIno, "arrays", {directory});
  add(kRootIno, "store.json", {store_json});
  add(kRootIno, "summary.txt", {root_summary});
  const FileNumber views_at = add(kRootIno, "views", {directory});

  // The store's hierarchy. Parents come before children in sorted order.
  std::map<std::string, FileNumber> directories{{"", arrays_at}};
  auto directory_of = [&](const std::string& path) {
    FileNumber at = arrays_at;
    std::string prefix;
    if (path.empty()) return at;
    for (const std::string& component : split(path, '/')) {
      prefix += (prefix.empty() ? "" : "/") + component;
      const auto [it, is_new] = directories.try_emplace(prefix, 0);
      if (is_new) it->second = add(at, component, {directory});
      at = it->second;
    }
    return at;
  };
  // An array has no other children, whatever consolidated metadata says: batchfs uses the names
  // below it.
  std::set<std::string> array_paths;
  for (const TreeArray& array : arrays_) array_paths.insert(array.path);
  auto is_below_array = [&](std::string path) {
    while (!path.empty()) {
      path.resize(path.find('/') == std::string::npos ? 0 : path.rfind('/'));
      if (array_paths.contains(path)) return true;
    }
    return false;
  };
  for (const std::string& group : groups)
    if (!is_below_array(group)) directory_of(group);
  FileNumber next_chunk = kChunks;
  for (std::uint32_t a = 0; a < arrays_.size(); ++a) {
    chunk_first_.push_back(next_chunk);
    if (is_below_array(arrays_[a].path)) {
      chunk_directory_numbers_.push_back(0);
      continue;
    }
    const FileNumber at = directory_of(arrays_[a].path);
    if (arrays_[a].grid) {
      chunk_directory_numbers_.push_back(add(at, "chunks", {chunk_directory, a}));
      next_chunk += static_cast<std::uint64_t>(arrays_[a].grid->chunk_count());
    } else {
      chunk_directory_numbers_.push_back(0);
    }
    add(at, "metadata.json", {array_metadata, a});
    add(at, "summary.txt", {array_summary, a});
    if (arrays_[a].grid) add(at, "values.npy", {array_values, a});
  }
  chunk_first_.push_back(next_chunk);

  const FileNumber span = views_.empty() ? 0 : (kEnd - kViews) / views_.size();
  for (std::uint32_t v = 0; v < views_.size(); ++v) {
    const View& view = *views_[v];
    batch_trees_.emplace_back(views_[v], snapshot);
    const FileNumber at = add(views_at, view.name(), {view_directory, v});
    view_numbers_.push_back(at);
    add(at, "view.json", {view_json, v});
    add(at, "schema.json", {view_schema, v});
    const FileNumber coords = add(at, "coords", {directory});
    for (std::size_t c = 0; c < view.coordinates().size(); ++c)
      add(coords, view.coordinates()[c].name + ".npy",
          {coordinate, v, static_cast<std::int64_t>(c)});
    Span s;
    s.rank_first = kViews + v * span;
    s.first = s.rank_first + static_cast<FileNumber>(kMaxWorld + 1) * kMaxWorld;
    s.batches = view.batches();
    s.per_batch = batch_trees_[v].slots().size();
    // World W has W ranks of ceil(batches / W) batches, fewer than batches + W in all, and W epoch
    // directories.
    s.per_world = (static_cast<FileNumber>(s.batches) + kMaxWorld) * s.per_batch + kMaxWorld;
    s.per_epoch = s.per_world * (kMaxWorld + 1);
    if (s.per_epoch > (span - (s.first - s.rank_first)) / kMaxEpochs)
      throw Error(
          ErrorCode::not_supported,
          fmt::format(
              "the view '{}' has {} batches, more than a mount can number; give it larger batches",
              view.name(), s.batches));
    spans_.push_back(s);
  }
  // Last: its presence must not change other numbers.
  constexpr auto kHandoff = static_cast<std::uint32_t>(ControlFile::handoff);
  if (handoff) add(control_at, std::string(kControlNames[kHandoff]), {control, kHandoff});
  for (Fixed& fixed : fixed_)
    std::sort(fixed.children.begin(), fixed.children.end(), [this](FileNumber a, FileNumber b) {
      return fixed_[a - 1].name < fixed_[b - 1].name;
    });
}

FileNumber Tree::epoch_number(std::uint32_t view, const Node& at) const {
  const Span& s = spans_[view];
  return s.first + static_cast<FileNumber>(at.epoch) * s.per_epoch +
         static_cast<FileNumber>(at.world) * s.per_world + static_cast<FileNumber>(at.rank);
}

FileNumber Tree::batch_number(const Node& at) const {
  const Span& s = spans_[at.index];
  const std::int64_t world = std::max<std::int64_t>(at.world, 1);
  const std::int64_t per_rank = (s.batches + world - 1) / world;
  const auto position = static_cast<FileNumber>(at.rank * per_rank + at.item);
  return s.first + static_cast<FileNumber>(at.epoch) * s.per_epoch +
         static_cast<FileNumber>(at.world) * s.per_world + kMaxWorld + position * s.per_batch +
         at.slot;
}

std::int64_t Tree::batch_count(const Node& epoch) const {
  return epoch.world == 0 ? spans_[epoch.index].batches
                          : views_[epoch.index]->rank_batches(epoch.rank, epoch.world);
}

std::optional<Node> Tree::node(FileNumber number) const {
  if (number == 0) return std::nullopt;
  if (number < kChunks) {
    if (number > fixed_.size()) return std::nullopt;
    return fixed_[number - 1].node;
  }
  if (number < kViews) {
    const auto it = std::upper_bound(chunk_first_.begin(), chunk_first_.end(), number);
    if (it == chunk_first_.end()) return std::nullopt;
    const auto array = static_cast<std::uint32_t>(it - chunk_first_.begin() - 1);
    return Node{Node::Kind::chunk, array, static_cast<std::int64_t>(number - chunk_first_[array])};
  }
  for (std::uint32_t v = static_cast<std::uint32_t>(spans_.size()); v-- > 0;) {
    const Span& s = spans_[v];
    if (number < s.rank_first) continue;
    Node node{Node::Kind::rank_directory, v};
    if (number < s.first) {
      node.world = static_cast<std::int64_t>((number - s.rank_first) / kMaxWorld);
      node.rank = static_cast<std::int64_t>((number - s.rank_first) % kMaxWorld);
      if (node.world == 0 || node.rank >= node.world) return std::nullopt;
      return node;
    }
    FileNumber rest = number - s.first;
    if (rest / s.per_epoch >= kMaxEpochs) return std::nullopt;
    node.epoch = static_cast<std::int64_t>(rest / s.per_epoch);
    rest %= s.per_epoch;
    node.world = static_cast<std::int64_t>(rest / s.per_world);
    rest %= s.per_world;
    const std::int64_t world = std::max<std::int64_t>(node.world, 1);
    if (rest < kMaxWorld) {
      node.kind = Node::Kind::epoch_directory;
      node.rank = static_cast<std::int64_t>(rest);
      return node.rank < world ? std::optional(node) : std::nullopt;
    }
    rest -= kMaxWorld;
    node.kind = Node::Kind::batch;
    node.slot = static_cast<std::uint32_t>(rest % s.per_batch);
    const auto position = static_cast<std::int64_t>(rest / s.per_batch);
    const std::int64_t per_rank = (s.batches + world - 1) / world;
    if (per_rank == 0) return std::nullopt;
    node.rank = position / per_rank;
    node.item = position % per_rank;
    if (node.rank >= world || node.item >= batch_count(node)) return std::nullopt;
    return node;
  }
  return std::nullopt;
}

bool Tree::is_directory(const Node& node) const {
  switch (node.kind) {
    case Node::Kind::directory:
    case Node::Kind::view_directory:
    case Node::Kind::chunk_directory:
    case Node::Kind::rank_directory:
    case Node::Kind::epoch_directory:
      return true;
    case Node::Kind::batch:
      return batch_trees_[node.index].slots()[node.slot].content == BatchSlot::Content::directory;
    default:
      return false;
  }
}

std::optional<FileNumber> Tree::lookup_in_epoch(const Node& epoch, std::string_view name) const {
  constexpr std::string_view kPrefix = "batch-";
  if (name.substr(0, kPrefix.size()) != kPrefix) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  const std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
  const auto batch = parse_numbered(name.substr(0, digits), 6);
  if (!batch || *batch >= batch_count(epoch)) return std::nullopt;
  const BatchTree& tree = batch_trees_[epoch.index];
  for (std::uint32_t slot : tree.top())
    if (tree.slots()[slot].name == name.substr(digits)) {
      Node node = epoch;
      node.kind = Node::Kind::batch;
      node.item = *batch;
      node.slot = slot;
      return batch_number(node);
    }
  return std::nullopt;
}

std::optional<FileNumber> Tree::lookup_in_view(std::uint32_t view, FileNumber parent,
                                               std::string_view name) const {
  const std::optional<Node> at = node(parent);
  const Span& s = spans_[view];
  if (name.substr(0, 6) == "epoch-") {
    const auto epoch = parse_numbered(name.substr(6), 4);
    if (!epoch || *epoch >= kMaxEpochs) return std::nullopt;
    Node node{Node::Kind::epoch_directory, view};
    node.epoch = *epoch;
    if (at->kind == Node::Kind::rank_directory) {
      node.rank = at->rank;
      node.world = at->world;
    }
    return epoch_number(view, node);
  }
  if (at->kind == Node::Kind::view_directory && name.substr(0, 5) == "rank-") {
    const std::size_t of = name.find("-of-");
    if (of == std::string_view::npos) return std::nullopt;
    const auto rank = parse_exact_number(name.substr(5, of - 5));
    const auto world = parse_exact_number(name.substr(of + 4));
    if (!rank || !world || *rank >= *world || *world > kMaxWorld) return std::nullopt;
    return s.rank_first + *world * kMaxWorld + *rank;
  }
  return std::nullopt;
}

std::optional<FileNumber> Tree::lookup(FileNumber parent, std::string_view name) const {
  const std::optional<Node> at = node(parent);
  if (!at) return std::nullopt;
  switch (at->kind) {
    case Node::Kind::chunk_directory: {
      constexpr std::string_view kSuffix = ".npy";
      if (name.size() <= kSuffix.size() || !name.ends_with(kSuffix)) return std::nullopt;
      name.remove_suffix(kSuffix.size());
      const ChunkGrid& grid = *arrays_[at->index].grid;
      const std::vector<std::string> parts = split(name, '.');
      if (parts.size() != std::max<std::size_t>(grid.counts().size(), 1)) return std::nullopt;
      Dims chunk;
      for (const std::string& part : parts) {
        const auto index = parse_exact_number(part);
        if (!index) return std::nullopt;
        if (grid.counts().empty()) {
          if (*index != 0) return std::nullopt;
          break;
        }
        if (*index >= static_cast<std::uint64_t>(grid.counts()[chunk.size()])) return std::nullopt;
        chunk.push_back(static_cast<std::int64_t>(*index));
      }
      const FileNumber number =
          chunk_first_[at->index] + static_cast<FileNumber>(grid.linear(chunk));
      return number < chunk_first_[at->index + 1] ? std::optional(number) : std::nullopt;
    }
    case Node::Kind::rank_directory:
      return lookup_in_view(at->index, parent, name);
    case Node::Kind::epoch_directory:
      return lookup_in_epoch(*at, name);
    case Node::Kind::batch: {
      const BatchTree& tree = batch_trees_[at->index];
      for (std::uint32_t slot : tree.children(at->slot))
        if (tree.slots()[slot].name == name) return parent - at->slot + slot;
      return std::nullopt;
    }
    default: {
      if (parent > fixed_.size()) return std::nullopt;
      const std::vector<FileNumber>& children = fixed_[parent - 1].children;
      const auto it =
          std::lower_bound(children.begin(), children.end(), name,
                           [this](FileNumber a, auto b) { return fixed_[a - 1].name < b; });
      if (it != children.end() && fixed_[*it - 1].name == name) return *it;
      if (at->kind == Node::Kind::view_directory) return lookup_in_view(at->index, parent, name);
      return std::nullopt;
    }
  }
}

std::optional<FileNumber> Tree::parent(FileNumber number) const {
  const std::optional<Node> at = node(number);
  if (!at) return std::nullopt;
  switch (at->kind) {
    case Node::Kind::chunk:
      return chunk_directory_numbers_[at->index];
    case Node::Kind::rank_directory:
      return view_numbers_[at->index];
    case Node::Kind::epoch_directory:
      if (at->world == 0) return view_numbers_[at->index];
      return spans_[at->index].rank_first + static_cast<FileNumber>(at->world) * kMaxWorld +
             static_cast<FileNumber>(at->rank);
    case Node::Kind::batch: {
      const std::uint32_t up = batch_trees_[at->index].slots()[at->slot].parent;
      if (up == BatchSlot::kEpochDirectory) return epoch_number(at->index, *at);
      return number - at->slot + up;
    }
    default:
      return fixed_[number - 1].parent;
  }
}

std::string Tree::name(FileNumber number, const Node& node) const {
  switch (node.kind) {
    case Node::Kind::chunk:
      return chunk_file_stem(arrays_[node.index].grid->chunk(node.item)) + ".npy";
    case Node::Kind::rank_directory:
      return fmt::format("rank-{}-of-{}", node.rank, node.world);
    case Node::Kind::epoch_directory:
      return epoch_name(node.epoch);
    case Node::Kind::batch: {
      const BatchSlot& slot = batch_trees_[node.index].slots()[node.slot];
      return slot.parent == BatchSlot::kEpochDirectory ? batch_name(node.item, slot) : slot.name;
    }
    default:
      return fixed_[number - 1].name;
  }
}

std::string Tree::path(FileNumber number) const {
  std::string path;
  while (number != kRootIno) {
    const std::optional<Node> at = node(number);
    if (!at) return "";
    path = name(number, *at) + (path.empty() ? "" : "/" + path);
    number = *parent(number);
  }
  return path;
}

void Tree::list(FileNumber directory, std::uint64_t offset, const Visit& visit) const {
  const std::optional<Node> at = node(directory);
  if (!at) return;
  if (at->kind == Node::Kind::chunk_directory) {
    const ChunkGrid& grid = *arrays_[at->index].grid;
    const auto count =
        static_cast<std::uint64_t>(chunk_first_[at->index + 1] - chunk_first_[at->index]);
    for (std::uint64_t i = offset; i < count; ++i)
      if (!visit(chunk_file_stem(grid.chunk(static_cast<std::int64_t>(i))) + ".npy",
                 chunk_first_[at->index] + i, i + 1))
        return;
    return;
  }
  if (at->kind == Node::Kind::epoch_directory) {
    const BatchTree& tree = batch_trees_[at->index];
    const std::uint64_t per_batch = tree.top().size();
    const std::uint64_t count = static_cast<std::uint64_t>(batch_count(*at)) * per_batch;
    Node child = *at;
    child.kind = Node::Kind::batch;
    for (std::uint64_t i = offset; i < count; ++i) {
      child.item = static_cast<std::int64_t>(i / per_batch);
      child.slot = tree.top()[i % per_batch];
      if (!visit(batch_name(child.item, tree.slots()[child.slot]), batch_number(child), i + 1))
        return;
    }
    return;
  }
  if (at->kind == Node::Kind::batch) {
    const std::vector<std::uint32_t> children = batch_trees_[at->index].children(at->slot);
    for (std::uint64_t i = offset; i < children.size(); ++i)
      if (!visit(batch_trees_[at->index].slots()[children[i]].name,
                 directory - at->slot + children[i], i + 1))
        return;
    return;
  }
  std::uint64_t position = 0;
  if (directory <= fixed_.size()) {
    for (FileNumber child : fixed_[directory - 1].children) {
      if (!fixed_[child - 1].listed) continue;
      if (position++ < offset) continue;
      if (!visit(fixed_[child - 1].name, child, position)) return;
    }
  }
  if (at->kind == Node::Kind::view_directory || at->kind == Node::Kind::rank_directory) {
    Node child{Node::Kind::epoch_directory, at->index};
    child.rank = at->rank;
    child.world = at->world;
    const std::int64_t epochs = std::min(views_[at->index]->spec().epochs, kMaxEpochs);
    for (std::int64_t e = std::max<std::int64_t>(
             0, static_cast<std::int64_t>(offset - std::min(offset, position)));
         e < epochs; ++e) {
      child.epoch = e;
      if (!visit(epoch_name(e), epoch_number(at->index, child),
                 position + static_cast<std::uint64_t>(e) + 1))
        return;
    }
  }
}

}  // namespace batchfs
