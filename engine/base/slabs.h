#pragma once
// Blocks of a few pages, whose memory returns to the system when they are freed.
//
// malloc keeps the holes between blocks that live longer, and a memory budget does not see them:
// chunks of 100 KB that were dropped for a batch would take their memory still. Here each block has
// pages of its own. A slab is a mapping that is cut into blocks of one size.

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <vector>

namespace batchfs {

/// Not thread-safe, except for release().
class Slabs {
 public:
  static constexpr std::size_t kPage = 4 << 10, kMaxBlock = 256 << 10;

  Slabs() = default;
  ~Slabs();
  Slabs(const Slabs&) = delete;
  Slabs& operator=(const Slabs&) = delete;

  /// A block without memory, all zeros. `size`: a multiple of kPage, at most kMaxBlock. Throws
  /// std::bad_alloc.
  std::byte* take(std::size_t size);
  /// Returns the memory of a taken block to the system.
  static void release(std::byte* block, std::size_t size);
  /// Takes a block back. Precondition: it was released, or never written.
  void give(std::byte* block, std::size_t size) noexcept;

  /// Slabs that are mapped.
  std::size_t count() const { return slabs_.size(); }

 private:
  static constexpr std::size_t kSlab = 2 << 20;
  struct Slab {
    std::byte* begin = nullptr;
    std::vector<std::byte*> free{};
    std::size_t used = 0;                      // blocks
    Slab *before = nullptr, *after = nullptr;  // with free blocks, of the same size
  };
  Slab*& first_with_free(std::size_t size) { return with_free_[size / kPage]; }
  Slab& map_slab(std::size_t size);
  void link(Slab& slab, std::size_t size);
  void unlink(Slab& slab, std::size_t size);

  std::map<const std::byte*, std::unique_ptr<Slab>> slabs_;  // by their begin
  std::array<Slab*, kMaxBlock / kPage + 1> with_free_{};
};

}  // namespace batchfs
