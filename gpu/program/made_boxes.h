#pragma once
// Channels that are made of times and places: the host computes their boxes, converted, into
// staging memory, and the GPU copies them to the device and puts their elements in place with the
// others.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/view/view.h"
#include "gpu/program/assembly_plan.h"

namespace batchfs::gpu {

/// Boxes of a batch that are computed together, each a C-order array of the tensor's type.
struct MadeBoxes {
  struct Box {
    MadePart made;
    std::uint64_t begin = 0;  // bytes from the first box's beginning
  };
  const View* view = nullptr;  // outlives this
  std::vector<Box> boxes;
  std::uint64_t bytes = 0;
};

/// All of a batch, in groups of about `group` bytes.
std::vector<MadeBoxes> made_boxes(const View& view, const BatchPlan& batch, std::uint64_t group);

/// Computes them: `to` has room for `boxes.bytes`.
void write(const MadeBoxes& boxes, std::byte* to);

/// Puts them in place: they lie at `offset` in the target area of decoding.
void add_made(GatherPlan& plan, const AssemblyTables& tables, const BatchPlan& batch,
              const MadeBoxes& boxes, std::uint64_t offset, std::span<const std::uint64_t> tensors);

}  // namespace batchfs::gpu
