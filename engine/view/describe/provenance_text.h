#pragma once
// The text of batch-….json: where each sample of a batch comes from.
//
// It is as long as the batch has samples and chunks, and made piece by piece: the lists are
// arithmetic on the rows' numbers, and the chunks are those that the plan would list.

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/base/text_source.h"
#include "engine/view/describe/json_writer.h"
#include "engine/view/describe/provenance_list.h"
#include "engine/view/plan/chunk_set.h"
#include "engine/view/plan/chunk_walk.h"
#include "engine/view/view.h"

namespace batchfs {

/// Not thread-safe.
class ProvenanceText final : public TextSource {
 public:
  /// `snapshot`: of the store's state; null: not mentioned. `reserve` gives memory for the chunks
  /// that were named, at most a bit for each chunk of the arrays.
  ProvenanceText(std::shared_ptr<const View> view, std::int64_t epoch, std::int64_t batch,
                 Json snapshot, ChunkSet::Reserve reserve);

  std::string next() override;
  /// Null in the list of chunks, where the set of those that were named would be copied.
  std::unique_ptr<TextSource> fork() const override;

 private:
  ProvenanceText(const ProvenanceText& other);
  void begin();
  void write_list();
  void write_chunks();
  void end();

  const std::shared_ptr<const View> view_;
  const std::int64_t epoch_, batch_;
  const Json snapshot_;
  const ChunkSet::Reserve reserve_;

  JsonWriter out_;
  enum class At : std::uint8_t { begin, lists, chunks, end } at_ = At::begin;
  std::shared_ptr<const std::vector<ProvenanceList>> lists_;  // shared with forks
  std::size_t list_ = 0;  // the one that is being written, from element next_ on
  std::int64_t next_ = 0;
  bool in_coordinates_ = false;
  std::vector<ChunkWalk> walks_;
  std::size_t walk_ = 0;
  std::vector<ChunkSet> named_;  // of each variable
};

}  // namespace batchfs
