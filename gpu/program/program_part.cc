#include "gpu/program/program_part.h"

#include <cstring>

#include "engine/base/error.h"
#include "engine/dataset/dataset.h"
#include "gpu/program/plan.h"

namespace batchfs::gpu {

namespace {

void refuse(StagedChunk& staged, const char* why, const ProgramPlace& place) {
  staged.chunk->refuse(staged.array->chunk_name(staged.index) + ": " + why);
  ++place.counters.chunks_refused;
}

/// Adds as many rounds for the chunks [begin, end) as the scratch memory requires.
void add_rounds(ProgramPart& part, const ProgramPlace& place, ProgramBuilder& builder,
                std::size_t begin, std::size_t end) {
  DecodePlan plan;
  std::vector<StagedChunk*> planned;
  for (std::size_t i = begin; i < end; ++i) {
    StagedChunk& staged = part.chunks[i];
    if (staged.way != StagedChunk::Way::decode) continue;
    const DecodePlan::Bytes bytes{place.staging + part.staging + staged.staging, staged.size};
    const GpuCodecSupport& coding = place.codings[staged.variable];
    const Verdict verdict =
        add_chunk(plan, coding, bytes, staged.staging, staged.chunk->offset, staged.chunk->bytes);
    if (verdict == Verdict::planned) {
      planned.push_back(&staged);
      continue;
    }
    // Other chunks of the array will be unsupported, too.
    if (verdict == Verdict::unsupported) place.cpu_only[staged.variable] = true;
    refuse(staged,
           verdict == Verdict::damaged
               ? "it looks damaged"
               : "its compression is of a kind that the GPU does not decode",
           place);
  }
  if (planned.empty()) return;
  if (!fits(plan, place.sizes)) {
    if (planned.size() == 1) {
      refuse(*planned.front(), "it needs more scratch memory than a program has", place);
      return;
    }
    const std::size_t middle = begin + (end - begin) / 2;
    add_rounds(part, place, builder, begin, middle);
    add_rounds(part, place, builder, middle, end);
    return;
  }
  plan.finish();
  builder.add_round(plan);
  for (StagedChunk* staged : planned) {
    staged->chunk->name = staged->array->chunk_name(staged->index);
    part.statuses.push_back(staged->chunk);
  }
}

/// Makes the program of a part whose bytes are present.
Program complete_program(ProgramPart& part, const ProgramPlace& place) {
  ProgramBuilder builder;
  builder.number = part.number;
  builder.batch = part.batch->place;
  builder.slot = part.batch->slot;
  builder.decode_after = part.decode_after;
  builder.assemble_after = part.assemble_after;
  // One copy for neighbours with neighbouring targets.
  const auto copy = [&](Area area, std::uint64_t staging, std::uint64_t offset,
                        std::uint64_t size) {
    if (!builder.copies.empty()) {
      CopyRow& last = builder.copies.back();
      // Copies the gap between two chunks for the decoders along with them.
      const std::uint64_t gap = staging - last.staging - last.size;
      if (last.area == area && area == Area::source && gap < kPage) {
        last.size += gap + size;
        return;
      }
    }
    builder.copies.push_back({staging, offset, size, area});
  };
  for (const StagedChunk& staged : part.chunks) {
    const bool decodes = staged.way == StagedChunk::Way::decode;
    copy(decodes ? Area::source : Area::target, part.staging + staged.staging,
         decodes ? staged.staging : staged.chunk->offset, staged.size);
    if (staged.way == StagedChunk::Way::made) continue;
    place.counters.bytes_decoded += staged.chunk->bytes;
    ++(staged.way == StagedChunk::Way::cpu ? place.counters.chunks_on_cpu
                                           : place.counters.chunks_on_gpu);
  }
  add_rounds(part, place, builder, 0, part.chunks.size());
  return builder.build(part.gathers.gathers(), part.gathers.slices());
}

}  // namespace

Verdict add_chunk(DecodePlan& plan, const GpuCodecSupport& coding, DecodePlan::Bytes stored,
                  std::uint64_t source, std::uint64_t target, std::uint64_t size) {
  switch (coding.kind) {
    case GpuCodecSupport::Kind::raw:
      return plan.add_raw(stored, source, target, size, coding.item);
    case GpuCodecSupport::Kind::blosc:
      return plan.add_blosc(stored, source, target, size);
    case GpuCodecSupport::Kind::zstd:
      return plan.add_zstd(stored, source, target, size, coding.item);
    case GpuCodecSupport::Kind::lz4:
      return plan.add_lz4(stored, source, target, size, coding.item);
    case GpuCodecSupport::Kind::zlib:
      return plan.add_deflate(stored, DeflateFormat::zlib, source, target, size, coding.item);
    case GpuCodecSupport::Kind::gzip:
      return plan.add_deflate(stored, DeflateFormat::gzip, source, target, size, coding.item);
    case GpuCodecSupport::Kind::cpu:
      break;
  }
  return Verdict::unsupported;
}

void stage(const StagedChunk& staged, std::uint64_t offset, std::uint64_t size, std::byte* to) {
  if (staged.way == StagedChunk::Way::made) return write(staged.made, to);
  const Array& array = *staged.array;
  if (staged.way == StagedChunk::Way::cpu) {
    const Box whole = whole_box(array.grid().chunk_shape());
    const Dims strides = c_strides(whole.shape, array.type().itemsize);
    Array::Loaded loaded;
    if (staged.stored)
      array.load(staged.index, whole, to, strides, &loaded);
    else
      array.decode(staged.index, std::get<EncodedChunk>(*staged.fetched), whole, to, strides);
  } else if (staged.stored) {
    array.read_stored(staged.index, *staged.stored, staged.begin + offset, {to, size});
  } else {
    std::memcpy(to, std::get<EncodedChunk>(*staged.fetched).bytes.data() + staged.begin + offset,
                size);
  }
}

void count(const EncodedChunk& arrived, Counters& counters) {
  counters.bytes_fetched += arrived.held();
  ++counters.chunks_fetched;
}

void count(const ProgramPart& part, Counters& counters) {
  for (const StagedChunk& staged : part.chunks) {
    if (staged.way == StagedChunk::Way::made) continue;
    if (staged.stored) {
      const bool of_values = staged.way == StagedChunk::Way::cpu;
      counters.bytes_fetched += of_values ? staged.stored->size : staged.size;
      ++counters.chunks_fetched;
    }
    counters.bytes_decoded += staged.chunk->bytes;
    ++counters.chunks_decoded;
  }
}

std::shared_ptr<const Program> build_program(ProgramPart& part, const ProgramPlace& place) {
  if (part.why_failed.empty()) {
    try {
      return std::make_shared<const Program>(complete_program(part, place));
    } catch (...) {
      part.why_failed = error_of(std::current_exception()).what();
    }
  }
  part.statuses.clear();
  for (StagedChunk& staged : part.chunks) staged.chunk->refuse(part.why_failed);
  ProgramBuilder nothing;
  nothing.number = part.number;
  nothing.batch = part.batch->place;
  nothing.slot = part.batch->slot;
  return std::make_shared<const Program>(nothing.build({}, 0));
}

}  // namespace batchfs::gpu
