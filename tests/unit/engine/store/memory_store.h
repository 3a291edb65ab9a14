#pragma once
// A store in memory for tests: set its objects, make keys fail, inspect its reads. Reads may come
// from several threads; set and inspect the members only while there are none.

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/store/store.h"

namespace batchfs {

class MemoryStore : public Store {
 public:
  struct Read {
    std::string key;
    std::uint64_t offset;
    std::uint64_t bytes;
    friend bool operator==(const Read&, const Read&) = default;
  };

  void set(const std::string& key, std::vector<std::byte> bytes) {
    objects[key] = std::move(bytes);
  }
  void set(const std::string& key, std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    objects[key] = {bytes.begin(), bytes.end()};
  }

  std::string url() const override { return "memory"; }
  bool is_local() const override { return local; }

  std::optional<Buffer> read(const std::string& key, ByteRange range) override {
    const auto object = find(key);
    {
      const std::lock_guard lock(mutex_);
      ++asked[key];
    }
    if (object == objects.end()) return std::nullopt;
    const std::vector<std::byte>& all = object->second;
    if (range.from_end)
      range.offset = all.size() - std::min<std::uint64_t>(range.length, all.size());
    const std::uint64_t offset = std::min<std::uint64_t>(range.offset, all.size());
    Buffer bytes(std::min<std::uint64_t>(range.length, all.size() - offset));
    if (bytes.size() > 0) std::memcpy(bytes.data(), all.data() + offset, bytes.size());
    const std::lock_guard lock(mutex_);
    reads.push_back({key, offset, bytes.size()});
    return bytes;
  }
  std::optional<PartRead> read_into(const std::string& key, std::uint64_t offset,
                                    std::span<std::byte> out) override {
    const auto object = find(key);
    if (object == objects.end()) return std::nullopt;
    const auto bytes = read(key, {offset, out.size()});
    if (bytes->size() > 0) std::memcpy(out.data(), bytes->data(), bytes->size());
    return PartRead{bytes->size(), object->second.size()};
  }
  void read_version_async(const std::string& key, ByteRange range, const std::string&,
                          VersionedDone done) override {
    VersionedRead outcome;
    try {
      outcome.bytes = read(key, range);
      outcome.object_size = size(key);
    } catch (...) {
      return done(std::current_exception());
    }
    done(std::move(outcome));
  }
  std::optional<std::uint64_t> size(const std::string& key) override {
    const auto object = find(key);
    return object == objects.end() ? std::nullopt
                                   : std::optional<std::uint64_t>(object->second.size());
  }
  std::vector<Entry> list(const std::string& prefix) override {
    if (!listable) throw Error(ErrorCode::not_supported, "this store cannot be listed");
    if (failing.contains(prefix)) throw Error(ErrorCode::io, "the disk is on fire", prefix);
    if (overfull.contains(prefix))
      throw Error(ErrorCode::no_memory, "the directory has more than 3 entries", prefix);
    std::map<std::string, bool> names;
    const std::string begin = prefix.empty() ? "" : prefix + "/";
    for (const auto& [key, bytes] : objects) {
      if (!key.starts_with(begin)) continue;
      const std::size_t slash = key.find('/', begin.size());
      names[key.substr(begin.size(), slash - begin.size())] |= slash != std::string::npos;
    }
    std::vector<Entry> entries;
    for (const auto& [name, is_prefix] : names) entries.push_back({name, is_prefix});
    return entries;
  }
  bool can_list() const override { return listable; }

  std::map<std::string, std::vector<std::byte>> objects;
  std::set<std::string> failing;   // keys whose reading fails
  std::set<std::string> overfull;  // directories with too many entries
  std::vector<Read> reads;
  std::map<std::string, int> asked;  // by key, missing ones too
  bool local = true;
  bool listable = true;

 private:
  std::map<std::string, std::vector<std::byte>>::iterator find(const std::string& key) {
    check_key(key);
    if (failing.contains(key)) throw Error(ErrorCode::io, "the disk is on fire", key);
    return objects.find(key);
  }

  std::mutex mutex_;  // guards `reads` and `asked`
};

}  // namespace batchfs
