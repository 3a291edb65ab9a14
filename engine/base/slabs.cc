#include "engine/base/slabs.h"

#include <new>

#include <sys/mman.h>

namespace batchfs {

Slabs::~Slabs() {
  for (const auto& [begin, slab] : slabs_) ::munmap(slab->begin, kSlab);
}

void Slabs::link(Slab& slab, std::size_t size) {
  Slab*& first = first_with_free(size);
  slab.before = nullptr;
  slab.after = first;
  if (first != nullptr) first->before = &slab;
  first = &slab;
}

void Slabs::unlink(Slab& slab, std::size_t size) {
  (slab.before != nullptr ? slab.before->after : first_with_free(size)) = slab.after;
  if (slab.after != nullptr) slab.after->before = slab.before;
}

Slabs::Slab& Slabs::map_slab(std::size_t size) {
  auto slab = std::make_unique<Slab>();
  slab->free.reserve(kSlab / size);
  void* mapped = ::mmap(nullptr, kSlab, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  // A huge page would back blocks that nobody has taken.
  ::madvise(mapped, kSlab, MADV_NOHUGEPAGE);
  slab->begin = static_cast<std::byte*>(mapped);
  // The first block is taken first.
  for (std::size_t i = kSlab / size; i > 0; --i) slab->free.push_back(slab->begin + (i - 1) * size);
  Slab& made = *slab;
  try {
    slabs_.emplace(made.begin, std::move(slab));
  } catch (...) {
    ::munmap(mapped, kSlab);
    throw;
  }
  link(made, size);
  return made;
}

std::byte* Slabs::take(std::size_t size) {
  Slab* const first = first_with_free(size);
  Slab& slab = first != nullptr ? *first : map_slab(size);
  std::byte* const block = slab.free.back();
  slab.free.pop_back();
  ++slab.used;
  if (slab.free.empty()) unlink(slab, size);
  return block;
}

void Slabs::release(std::byte* block, std::size_t size) { ::madvise(block, size, MADV_DONTNEED); }

void Slabs::give(std::byte* block, std::size_t size) noexcept {
  const auto it = std::prev(slabs_.upper_bound(block));
  Slab& slab = *it->second;
  slab.free.push_back(block);  // has room for all
  if (slab.free.size() == 1) link(slab, size);
  if (--slab.used > 0) return;
  unlink(slab, size);
  ::munmap(slab.begin, kSlab);
  slabs_.erase(it);
}

}  // namespace batchfs
