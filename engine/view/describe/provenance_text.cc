#include "engine/view/describe/provenance_text.h"
#include "engine/view/describe/provenance.h"
#include "engine/view/plan/batch_planner.h"

#include <algorithm>
#include <utility>

namespace batchfs {

namespace {

constexpr std::size_t kPiece = 32 << 10;

/// Chunks of which most were named before are looked at so many at a time.
constexpr int kChunksAtATime = 4096;

}  // namespace

ProvenanceText::ProvenanceText(std::shared_ptr<const View> view, std::int64_t epoch,
                               std::int64_t batch, Json snapshot, ChunkSet::Reserve reserve)
    : view_(std::move(view)),
      epoch_(epoch),
      batch_(batch),
      snapshot_(std::move(snapshot)),
      reserve_(std::move(reserve)) {}

/// Precondition: no chunk was named.
ProvenanceText::ProvenanceText(const ProvenanceText& other)
    : view_(other.view_),
      epoch_(other.epoch_),
      batch_(other.batch_),
      snapshot_(other.snapshot_),
      reserve_(other.reserve_),
      out_(other.out_),
      at_(other.at_),
      lists_(other.lists_),
      list_(other.list_),
      next_(other.next_),
      in_coordinates_(other.in_coordinates_) {}

std::unique_ptr<TextSource> ProvenanceText::fork() const {
  if (at_ != At::begin && at_ != At::lists) return nullptr;
  return std::unique_ptr<TextSource>(new ProvenanceText(*this));
}

std::string ProvenanceText::next() {
  std::string piece;
  while (piece.size() < kPiece) {
    switch (at_) {
      case At::begin:
        begin();
        break;
      case At::lists:
        write_list();
        break;
      case At::chunks:
        write_chunks();
        break;
      case At::end:
        return piece;
    }
    piece += out_.take();
  }
  return piece;
}

void ProvenanceText::begin() {
  out_.begin_object();
  out_.key("view");
  out_.value(Json(view_->name()));
  out_.key("epoch");
  out_.value(epoch_);
  out_.key("batch");
  out_.value(batch_);
  lists_ =
      std::make_shared<const std::vector<ProvenanceList>>(provenance_lists(*view_, epoch_, batch_));
  at_ = At::lists;
}

void ProvenanceText::write_list() {
  if (list_ < lists_->size()) {
    const ProvenanceList& list = (*lists_)[list_];
    if (list.is_coordinate && !std::exchange(in_coordinates_, true)) {
      out_.key("coordinates");
      out_.begin_object();
    }
    // A coordinate of no samples is left out.
    if (next_ == 0 && !(list.is_coordinate && list.count == 0)) {
      out_.key(list.key);
      out_.begin_array();
    }
    const RowRange range{next_, std::min(kRowsAtATime, list.count - next_)};
    if (range.count > 0) list.write(range, out_);
    next_ = range.end();
    if (next_ < list.count) return;
    if (!(list.is_coordinate && list.count == 0)) out_.end_array();
    next_ = 0;
    ++list_;
    return;
  }
  if (!in_coordinates_) {
    out_.key("coordinates");
    out_.begin_object();
  }
  out_.end_object();
  out_.key("chunks");
  out_.begin_array();
  walks_ = chunk_walks(*view_, epoch_, batch_);
  for (const Variable* variable : view_->variables())
    named_.emplace_back(variable->array->grid().chunk_count());
  at_ = At::chunks;
}

void ProvenanceText::write_chunks() {
  for (int i = 0; i < kChunksAtATime && out_.size() < kPiece; ++i) {
    if (walk_ == walks_.size()) return end();
    const std::optional<ChunkWalk::Chunk> chunk = walks_[walk_].next();
    if (!chunk)
      ++walk_;
    else if (named_[chunk->variable].insert(chunk->chunk, reserve_))
      out_.value(Json(chunk_label(*view_, chunk->variable, chunk->chunk)));
  }
}

void ProvenanceText::end() {
  out_.end_array();
  if (!snapshot_.is_null()) {
    out_.key("snapshot");
    out_.value(snapshot_);
  }
  out_.end_object();
  out_.end_line();
  walks_.clear();
  named_.clear();
  at_ = At::end;
}

}  // namespace batchfs
