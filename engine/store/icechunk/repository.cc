#include "engine/store/icechunk/repository.h"

#include <algorithm>
#include <cstring>
#include <future>
#include <set>

#include <fmt/format.h>

#include "engine/base/json.h"
#include "engine/base/printable.h"
#include "engine/base/strings.h"
#include "engine/store/virtual/claims.h"

namespace batchfs::icechunk {

namespace {

// Fields of the schema's tables by number: repo.fbs of Icechunk's.
enum RepoField {
  kTags = 1,
  kBranches = 2,
  kDeletedTags = 3,
  kSnapshots = 4,
  kStatus = 5,
  kConfig = 9
};
enum RefField { kRefName, kRefSnapshot };
enum SnapshotInfoField { kInfoId, kInfoParent, kInfoWrittenAt, kInfoMessage };
enum StatusField { kAvailability, kReason = 2 };
constexpr std::uint8_t kOffline = 2;

constexpr const char* kMain = "main";
constexpr std::uint64_t kMaxRefFile = 4096;
/// Limit for version 1, where each step takes a round trip.
constexpr std::size_t kMaxSteps = 100'000;

std::string branch_key(const std::string& name) { return "refs/branch." + name + "/ref.json"; }
std::string tag_key(const std::string& name) { return "refs/tag." + name + "/ref.json"; }

/// The bytes that were read ahead, if any.
const Buffer* bytes_of(const std::optional<ReadOutcome>& known) {
  const auto* bytes = known ? std::get_if<std::optional<Buffer>>(&*known) : nullptr;
  return bytes != nullptr && *bytes ? &**bytes : nullptr;
}

/// Is this the complete object, or a report that it is missing? Failed reads are tried again.
bool is_answer(const std::optional<ReadOutcome>& known) {
  if (!known || std::holds_alternative<std::exception_ptr>(*known)) return false;
  const Buffer* bytes = bytes_of(known);
  return bytes == nullptr || bytes->size() < kSignBytes;
}

/// Reads in flight; take() waits.
class Reading {
 public:
  /// Reads nothing where `known` is the answer.
  Reading(Store& store, std::string key, std::uint64_t largest,
          std::optional<ReadOutcome> known = {})
      : key_(std::move(key)) {
    const auto promise = std::make_shared<std::promise<ReadOutcome>>();
    outcome_ = promise->get_future();
    if (is_answer(known))
      promise->set_value(std::move(*known));
    else
      store.read_async(key_, {0, UINT64_MAX, false, largest},
                       [promise](ReadOutcome outcome) { promise->set_value(std::move(outcome)); });
  }
  std::optional<Buffer> take() {
    ReadOutcome outcome = outcome_.get();
    if (const auto* error = std::get_if<std::exception_ptr>(&outcome))
      std::rethrow_exception(*error);
    return std::move(std::get<std::optional<Buffer>>(outcome));
  }

 private:
  const std::string key_;
  std::future<ReadOutcome> outcome_;
};

/// For missing objects web servers answer anything, or access denied.
bool is_no_answer(const Error& error) {
  return error.code() == ErrorCode::corrupt || error.code() == ErrorCode::access_denied ||
         error.code() == ErrorCode::invalid_argument;
}

std::optional<Buffer> take_if_there(Reading& reading) {
  try {
    return reading.take();
  } catch (const Error& error) {
    if (is_no_answer(error)) return std::nullopt;
    throw;
  }
}

/// The snapshot named in a branch or tag file of version 1; nullopt for other files.
std::optional<std::string> text_of_ref(const Buffer& bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  try {
    const Json json = parse_json(text, "ref.json", {.memory = 1 << 20});
    return JsonRef(json, "").at("snapshot").string();
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// The snapshot that it names; nullopt where it names none.
std::optional<ObjectId> parse_ref(const Buffer& bytes) {
  const std::optional<std::string> text = text_of_ref(bytes);
  return text ? parse_object_id(*text) : std::nullopt;
}

ObjectId checked_id(Bytes bytes) {
  ObjectId id;
  if (bytes.size() != id.size()) throw_flat_damage("a snapshot without its id");
  std::memcpy(id.data(), bytes.data(), id.size());
  return id;
}

void check_name(const std::string& name) {
  if (name.empty() || name.find('/') != std::string::npos || !is_key(name))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{}' cannot be the name of a branch or tag", printable(name)));
}

ObjectId parse_user_id(const std::string& text) {
  const std::optional<ObjectId> id = parse_object_id(text);
  if (!id)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{}' is not the id of a snapshot, 20 letters and digits such as "
                            "1CECHNKREP0F1RSTCMT0",
                            printable(text)));
  return *id;
}

}  // namespace

bool is_repository(const RepositorySigns& signs) {
  const Buffer *entry = bytes_of(signs.entry), *branch = bytes_of(signs.main_branch);
  return (entry != nullptr && has_magic(entry->span())) ||
         (branch != nullptr && text_of_ref(*branch));
}

std::string snapshot_key(const ObjectId& id) { return "snapshots/" + base32(id); }
std::string manifest_key(const ObjectId& id) { return "manifests/" + base32(id); }
std::string chunk_key(const ObjectId& id) { return "chunks/" + base32(id); }

Error removed(const std::string& what) {
  return Error(ErrorCode::stale, "the repository does not have the " + what +
                                     " that this snapshot needs: garbage collection removed it, or "
                                     "a copy left it out; open a snapshot that a branch or tag "
                                     "still names");
}

Repository::Repository(std::shared_ptr<Store> entry, const IcechunkOptions& options,
                       std::uint64_t memory)
    : entry_(std::move(entry)), options_(options), memory_(memory) {}

std::unique_ptr<Repository> Repository::find(std::shared_ptr<Store> entry,
                                             const IcechunkOptions& options, std::uint64_t memory,
                                             RepositorySigns signs) {
  const int chosen = !options.branch.empty() + !options.tag.empty() + !options.snapshot.empty();
  if (chosen > 1)
    throw Error(ErrorCode::invalid_argument, "give one of --branch, --tag and --snapshot");
  if (options.as_of && (!options.tag.empty() || !options.snapshot.empty()))
    throw Error(ErrorCode::invalid_argument,
                "--as-of goes with a branch, not with --tag or "
                "--snapshot");
  const std::string branch = options.branch.empty() ? kMain : options.branch;
  check_name(branch);
  const bool is_main = branch == kMain;
  std::optional<ReadOutcome>& known = signs.main_branch;
  Reading repo(*entry, kRepositoryEntry, memory, std::move(signs.entry));
  Reading ref(*entry, branch_key(branch), kMaxRefFile, is_main ? std::move(known) : std::nullopt);
  std::optional<Reading> main_ref;
  if (!is_main) main_ref.emplace(*entry, kMainBranch, kMaxRefFile, std::move(known));
  const std::optional<Buffer> repo_bytes = take_if_there(repo);
  const std::optional<Buffer> ref_bytes = take_if_there(ref);
  std::unique_ptr<Repository> found(new Repository(std::move(entry), options, memory));
  if (repo_bytes && has_magic(repo_bytes->span())) {
    try {
      found->open_entry(*repo_bytes);
    } catch (Error& error) {
      throw error.at(found->entry_->url() + "/" + kRepositoryEntry);
    }
    return found;
  }
  if (ref_bytes) found->old_branch_ = parse_ref(*ref_bytes);
  bool is_there = found->old_branch_.has_value();
  if (!is_there && main_ref) {
    const std::optional<Buffer> main_bytes = take_if_there(*main_ref);
    is_there = main_bytes && parse_ref(*main_bytes);
  }
  return is_there ? std::move(found) : nullptr;
}

void Repository::open_entry(const Buffer& bytes) {
  file_ = open_file(bytes.span(), FileType::repository, memory_);
  Claims claims(memory_);
  const FlatTable root = file_->root();
  if (const FlatTable status = root.table(kStatus, "a repository without its status");
      status.number<std::uint8_t>(kAvailability, 0) == kOffline)
    throw Error(ErrorCode::access_denied,
                fmt::format("the repository has been taken offline: {}",
                            printable(std::string(status.text(kReason).substr(0, 500)))));
  const FlatTables snapshots = root.tables(kSnapshots);
  claims.take(std::uint64_t{snapshots.size()} * (sizeof(Commit) + sizeof(ObjectId)));
  std::vector<ObjectId> ids;
  for (std::uint32_t i = 0; i < snapshots.size(); ++i)
    ids.push_back(checked_id(snapshots[i].structure(kInfoId, sizeof(ObjectId))));
  for (std::uint32_t i = 0; i < snapshots.size(); ++i) {
    const FlatTable info = snapshots[i];
    Commit commit{ids[i], std::nullopt, info.number<std::uint64_t>(kInfoWrittenAt, 0),
                  std::string(info.text(kInfoMessage))};
    claims.take(commit.message.size());
    const auto parent = info.number<std::int32_t>(kInfoParent, 0);
    if (parent >= static_cast<std::int64_t>(ids.size()) || parent < -1)
      throw Error(ErrorCode::corrupt, "a snapshot's parent is none of the repository's snapshots");
    if (parent >= 0) commit.parent = ids[static_cast<std::size_t>(parent)];
    commits_.push_back(std::move(commit));
  }
  std::sort(commits_.begin(), commits_.end(),
            [](const Commit& a, const Commit& b) { return a.id < b.id; });
  const auto read_refs = [&](int field, std::vector<Ref>& refs) {
    const FlatTables tables = root.tables(field);
    claims.take(std::uint64_t{tables.size()} * sizeof(Ref));
    for (std::uint32_t i = 0; i < tables.size(); ++i) {
      const auto index = tables[i].number<std::uint32_t>(kRefSnapshot, 0);
      if (index >= ids.size())
        throw Error(ErrorCode::corrupt, "a branch or tag names none of the repository's snapshots");
      refs.push_back({std::string(tables[i].text(kRefName)), ids[index]});
      claims.take(refs.back().name.size());
    }
  };
  read_refs(kBranches, branches_);
  read_refs(kTags, tags_);
  const FlatVector deleted = root.vector(kDeletedTags, sizeof(std::uint32_t));
  claims.take(std::uint64_t{deleted.count} * sizeof(std::string));
  for (const std::string_view name : root.texts(kDeletedTags)) {
    claims.take(name.size());
    deleted_tags_.emplace_back(name);
  }
  config_ = root.bytes(kConfig);
}

Repository::Choice Repository::choose() {
  if (!options_.pinned.empty()) {
    const std::string branch = options_.branch.empty() ? kMain : options_.branch;
    return {parse_user_id(options_.pinned), !options_.snapshot.empty() ? ""
                                            : options_.tag.empty()     ? "branch " + branch
                                                                       : "tag " + options_.tag};
  }
  if (!options_.snapshot.empty()) return {parse_user_id(options_.snapshot), ""};
  if (version() == 1) return choose_old();
  const auto named = [](const std::vector<Ref>& refs, const std::string& name) {
    return std::find_if(refs.begin(), refs.end(),
                        [&name](const Ref& ref) { return ref.name == name; });
  };
  if (!options_.tag.empty()) {
    const auto tag = named(tags_, options_.tag);
    if (tag != tags_.end()) return {tag->snapshot, "tag " + tag->name};
    if (std::find(deleted_tags_.begin(), deleted_tags_.end(), options_.tag) != deleted_tags_.end())
      throw Error(ErrorCode::not_found,
                  fmt::format("the tag '{}' was deleted", printable(options_.tag)));
    throw no_ref("tag", options_.tag, tags_);
  }
  const std::string name = options_.branch.empty() ? kMain : options_.branch;
  const auto branch = named(branches_, name);
  if (branch == branches_.end()) throw no_ref("branch", name, branches_);
  return {as_of(name, branch->snapshot), "branch " + name};
}

Error Repository::no_ref(const char* kind, const std::string& name,
                         const std::vector<Ref>& refs) const {
  std::vector<std::string> names;
  for (const Ref& ref : refs) names.push_back(ref.name);
  return Error(ErrorCode::not_found, fmt::format("the repository has no {} '{}'{}", kind,
                                                 printable(name), nearest_or_all(name, names)));
}

Repository::Choice Repository::choose_old() {
  if (!options_.tag.empty()) {
    check_name(options_.tag);
    const std::string key = tag_key(options_.tag);
    Reading ref(*entry_, key, kMaxRefFile);
    Reading deleted(*entry_, key + ".deleted", kMaxRefFile);
    const std::optional<Buffer> bytes = ref.take();
    // A deleted tag keeps its file.
    if (deleted.take())
      throw Error(ErrorCode::not_found,
                  fmt::format("the tag '{}' was deleted", printable(options_.tag)));
    if (!bytes) throw no_ref("tag", options_.tag, tags());
    const std::optional<ObjectId> id = parse_ref(*bytes);
    if (!id) throw Error(ErrorCode::corrupt, "this names no snapshot", key);
    return {*id, "tag " + options_.tag};
  }
  const std::string name = options_.branch.empty() ? kMain : options_.branch;
  if (!old_branch_) throw no_ref("branch", name, branches());
  return {as_of(name, *old_branch_), "branch " + name};
}

ObjectId Repository::as_of(const std::string& branch, ObjectId newest) {
  if (!options_.as_of) return newest;
  const auto time = static_cast<std::uint64_t>(std::max<std::int64_t>(0, *options_.as_of));
  std::set<ObjectId> seen;
  for (ObjectId id = newest; seen.insert(id).second && seen.size() <= kMaxSteps;) {
    const Commit at = commit(id);
    if (at.written_at <= time) return id;
    if (!at.parent) break;
    id = *at.parent;
  }
  throw Error(ErrorCode::not_found,
              fmt::format("the branch '{}' has no snapshot as old as --as-of asks for; older ones "
                          "may have been expired",
                          printable(branch)));
}

Commit Repository::commit(const ObjectId& id) {
  if (version() == 2) {
    const auto it =
        std::lower_bound(commits_.begin(), commits_.end(), id,
                         [](const Commit& commit, const ObjectId& i) { return commit.id < i; });
    if (it != commits_.end() && it->id == id) return *it;
  } else if (const auto bytes = entry_->read(snapshot_key(id), {0, UINT64_MAX, false, memory_})) {
    const auto snapshot = Snapshot::parse(bytes->span(), id, memory_);
    return {id, snapshot->parent(), snapshot->written_at(), std::string(snapshot->message())};
  }
  throw Error(ErrorCode::not_found, fmt::format("the repository has no snapshot {}", base32(id)));
}

std::vector<Commit> Repository::history(const ObjectId& from, std::size_t most) {
  std::vector<Commit> commits;
  std::set<ObjectId> seen;
  for (std::optional<ObjectId> id = from; id && seen.insert(*id).second && commits.size() < most;) {
    commits.push_back(commit(*id));
    id = commits.back().parent;
  }
  return commits;
}

std::vector<Ref> Repository::branches() { return version() == 2 ? branches_ : old_refs("branch."); }
std::vector<Ref> Repository::tags() { return version() == 2 ? tags_ : old_refs("tag."); }

/// The refs in a listing; none where listing is not possible.
std::vector<Ref> Repository::old_refs(const std::string& kind) {
  std::vector<Ref> refs;
  if (!entry_->can_list()) return refs;
  for (const Store::Entry& entry : entry_->list("refs")) {
    if (!entry.is_prefix || !entry.name.starts_with(kind)) continue;
    const std::string key = "refs/" + entry.name + "/ref.json";
    const std::optional<Buffer> bytes = entry_->read(key, {0, UINT64_MAX, false, kMaxRefFile});
    const std::optional<ObjectId> id = bytes ? parse_ref(*bytes) : std::nullopt;
    if (!id || entry_->size(key + ".deleted")) continue;
    refs.push_back({entry.name.substr(kind.size()), *id});
  }
  return refs;
}

}  // namespace batchfs::icechunk
