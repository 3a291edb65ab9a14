#include "tools/planning/explanation_text.h"

#include <vector>

#include <fmt/format.h>

#include "engine/base/counted.h"
#include "engine/base/strings.h"
#include "engine/dataset/dataset.h"
#include "tools/cli/text.h"

namespace batchfs {

namespace {

using ChunkFrom = ExplainedChunk::From;
using SourceKind = ChunkReuse::Supply::Kind;
using DecodeReason = DecodeChoice::Why;

double significant(double value) { return std::stod(fmt::format("{:.4g}", value)); }

const char* name_of(ChunkFrom from) {
  switch (from) {
    case ChunkFrom::memory:
      return "memory";
    case ChunkFrom::disk_cache:
      return "disk cache";
    case ChunkFrom::store:
      return "store";
    case ChunkFrom::missing:
      return "missing";
  }
  return "";
}

const char* name_of(SourceKind kind) {
  return kind == SourceKind::decoded ? "decoded" : kind == SourceKind::joined ? "joined" : "kept";
}

const char* name_of(DecodeReason why) {
  switch (why) {
    case DecodeReason::only_whole:
      return "only_whole";
    case DecodeReason::uncompressed:
      return "uncompressed";
    case DecodeReason::parts_cost:
      return "parts_cost";
    case DecodeReason::stays:
      return "stays";
    case DecodeReason::most_is_used:
      return "most_is_used";
    case DecodeReason::part_is_less:
      return "part_is_less";
  }
  return "";
}

/// "whole: 1.05 in parts, at least 0.9".
std::string reason(const ExplainedChunk& chunk) {
  if (!chunk.failure.empty()) return "cannot be found: " + printable(chunk.failure);
  if (chunk.from == ChunkFrom::memory) {
    const std::string by = chunk.source->decoded_by < 0
                               ? "an earlier epoch"
                               : fmt::format("batch {}", chunk.source->decoded_by);
    return chunk.source->kind == SourceKind::kept ? "decoded by " + by + ", stays in memory"
                                                  : "taken when decoded by " + by;
  }
  if (chunk.from == ChunkFrom::missing) return "not stored: fill values";
  const DecodeChoice& choice = chunk.decoding;
  const std::string how = chunk.in_part ? "part: " : "whole: ";
  const std::string costs = choice.later > 0 ? fmt::format("parts cost {:.2f}, later uses {:.2f}",
                                                           choice.parts, choice.later)
                                             : fmt::format("parts cost {:.2f}", choice.parts);
  switch (choice.why) {
    case DecodeReason::only_whole:
      return how + "its codecs decode nothing less";
    case DecodeReason::uncompressed:
      return how + "uncompressed, only needed bytes are read";
    case DecodeReason::stays:
      return how + "stays in memory and is used again";
    case DecodeReason::most_is_used:
      return how + "its blocks are more than half of it";
    case DecodeReason::parts_cost:
      return fmt::format("{}{} of the whole, limit {}", how, costs, kMaxPartCost);
    case DecodeReason::part_is_less:
      return fmt::format("{}{} of the whole", how, costs);
  }
  return how;
}

std::string fetched_text(const BatchExplanation::Totals& totals) {
  return (totals.fetched_known ? "" : "about ") + estimated_size(totals.fetched);
}

std::string counts_text(const BatchExplanation::Totals& totals) {
  std::vector<std::string> parts;
  if (totals.whole > 0) parts.push_back(fmt::format("{} whole", totals.whole));
  if (totals.in_part > 0) parts.push_back(fmt::format("{} in part", totals.in_part));
  if (totals.missing > 0) parts.push_back(fmt::format("{} not stored", totals.missing));
  if (parts.empty()) parts.emplace_back("nothing");
  return join(parts, ", ");
}

std::string totals_text(const BatchExplanation::Totals& totals) {
  return fmt::format("{}; {} fetched, {} decoded", counts_text(totals), fetched_text(totals),
                     estimated_size(totals.decoded));
}

Json totals_json(const BatchExplanation::Totals& totals) {
  return {{"whole", totals.whole},
          {"in_part", totals.in_part},
          {"missing", totals.missing},
          {"fetched_bytes", static_cast<std::int64_t>(totals.fetched)},
          {"fetched_bytes_are", totals.fetched_known ? "exact" : "estimate"},
          {"decoded_bytes", static_cast<std::int64_t>(totals.decoded)}};
}

const Array& array_of(const View& view, const ExplainedChunk& chunk) {
  return *view.variables()[chunk.variable]->array;
}

Json box_json(const Box& box) {
  return {{"start", shape_json(box.start)}, {"shape", shape_json(box.shape)}};
}

Json chunk_json(const View& view, const ExplainedChunk& chunk) {
  const Array& array = array_of(view, chunk);
  Json json = {{"array", array.metadata().path},
               {"chunk", shape_json(array.grid().chunk(chunk.chunk))},
               {"needed", box_json(chunk.need)},
               {"needed_share", significant(chunk.taken)},
               {"from", name_of(chunk.from)},
               {"how", chunk.source ? Json(name_of(chunk.source->kind)) : Json()},
               {"decoded_by", Json()},
               {"later_uses", chunk.source ? Json(chunk.source->later) : Json()},
               {"key", Json()},
               {"offset", Json()},
               {"stored_bytes", Json()}};
  if (chunk.source && chunk.source->decoded_by >= 0) json["decoded_by"] = chunk.source->decoded_by;
  if (!chunk.failure.empty()) json["error"] = chunk.failure;
  if (chunk.place) {
    json["key"] = chunk.place->key;
    if (chunk.place->in_shard) json["offset"] = chunk.place->offset;
    if (chunk.place->size) json["stored_bytes"] = *chunk.place->size;
  }
  if (chunk.from == ChunkFrom::memory) return json;
  json["decoded_box"] = box_json(chunk.decoding.box);
  json["in_part"] = chunk.in_part;
  json["decoded_bytes"] = chunk.decoded;
  json["fetched_bytes"] = static_cast<std::int64_t>(chunk.fetched);
  json["fetched_bytes_are"] = chunk.fetched_known ? "exact" : "estimate";
  json["why"] = name_of(chunk.decoding.why);
  json["cost"] = {{"parts", significant(chunk.decoding.parts)},
                  {"later", significant(chunk.decoding.later)},
                  {"limit", kMaxPartCost}};
  if (chunk.fetching.whole > 0)
    json["fetch_cost"] = {{"pieces", significant(chunk.fetching.pieces)},
                          {"whole", significant(chunk.fetching.whole)}};
  return json;
}

}  // namespace

std::string explanation_text(const View& view, const BatchExplanation& explanation,
                             std::uint64_t memory) {
  std::string out =
      fmt::format("Batch {} of epoch {} of view {}: {}, {}\n\n", explanation.batch,
                  explanation.epoch, printable(view.name()), counted(explanation.samples, "sample"),
                  counted(explanation.chunks, "chunk"));
  Table table({"read alone", totals_text(explanation.alone)});
  if (const auto& in_order = explanation.in_order) {
    table.add({"in order", totals_text(in_order->read)});
    if (in_order->kept > 0)
      table.add({"kept", counted(in_order->kept, "chunk") + " of earlier batches stay in memory"});
    if (in_order->joined > 0)
      table.add({"joined", "parts of " + counted(in_order->joined, "chunk") +
                               " are taken when earlier batches decode them"});
    if (in_order->on_disk > 0)
      table.add({"disk cache", "holds " + counted(in_order->on_disk, "chunk")});
    table.add({"memory", format_size(memory)});
  } else {
    table.add({"in order", "not known: the epoch is too long to follow, or has lanes"});
  }
  out += table.text() + "\n";
  Table chunks({"chunk", "needed", "from", "fetched", "decoded", "why"});
  for (std::size_t i = 0; i < std::min(kListedInText, explanation.listed.size()); ++i) {
    const ExplainedChunk& chunk = explanation.listed[i];
    const Array& array = array_of(view, chunk);
    const bool here = chunk.from == ChunkFrom::memory;
    chunks.add({printable(array.chunk_name(array.grid().chunk(chunk.chunk))),
                percent_text(chunk.taken), name_of(chunk.from),
                here ? "" : (chunk.fetched_known ? "" : "~") + estimated_size(chunk.fetched),
                here ? "" : format_size(chunk.decoded), reason(chunk)});
  }
  out += chunks.text();
  const auto shown = static_cast<std::int64_t>(std::min(kListedInText, explanation.listed.size()));
  if (explanation.chunks > shown)
    out += fmt::format("  and {} more; --json lists up to {}\n", explanation.chunks - shown,
                       kListedInJson);
  return out;
}

Json explanation_json(const View& view, const BatchExplanation& explanation, std::uint64_t memory) {
  Json json = {{"view", view.name()},
               {"epoch", explanation.epoch},
               {"batch", explanation.batch},
               {"samples", explanation.samples},
               {"memory_budget", memory},
               {"chunks", explanation.chunks},
               {"chunks_listed", explanation.listed.size()},
               {"read_alone", totals_json(explanation.alone)},
               {"read_in_order", Json()},
               {"list", Json::array()}};
  if (const auto& in_order = explanation.in_order) {
    Json& read = json["read_in_order"] = totals_json(in_order->read);
    read["kept"] = in_order->kept;
    read["joined"] = in_order->joined;
    read["on_disk"] = in_order->on_disk;
  }
  for (const ExplainedChunk& chunk : explanation.listed)
    json["list"].push_back(chunk_json(view, chunk));
  return json;
}

}  // namespace batchfs
