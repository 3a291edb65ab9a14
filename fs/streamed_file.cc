#include "fs/streamed_file.h"

#include <utility>

#include "engine/base/error.h"

namespace batchfs {

/// A read that is being answered.
class StreamedFile::Reading {
 public:
  Reading(StreamedFile& file, std::uint64_t offset, std::uint64_t size, ReadDone done)
      : file_(file), offset_(offset), size_(size), done_(std::move(done)) {}
  ~Reading() {
    if (done_ != nullptr)
      answer(std::make_exception_ptr(Error(ErrorCode::interrupted, "the mount ends")));
  }
  Reading(const Reading&) = delete;

  /// Makes text until the read is answered: a step now, the others in posted work.
  static void run(const std::shared_ptr<Reading>& reading) {
    bool complete = false;
    std::exception_ptr error;
    try {
      complete = reading->step();
    } catch (...) {
      error = std::current_exception();
    }
    if (complete || error)
      reading->answer(error);
    else
      reading->file_.post_([reading] { run(reading); });
  }

 private:
  /// Makes about kStep bytes of text. Returns whether all bytes of the read were found.
  bool step() {
    if (cursor_.source == nullptr) cursor_ = file_.cursors_->take(&file_, offset_);
    if (cursor_.source == nullptr) cursor_ = {file_.make_(), {}, 0, false};
    for (std::uint64_t made = 0; made < kStep; made += cursor_.piece.size()) {
      if (const std::uint64_t at = offset_ + text_.size(); at < cursor_.end())
        text_.append(cursor_.piece, at - cursor_.begin, size_ - text_.size());
      if (text_.size() == size_ || cursor_.ended) {
        file_.cursors_->put(&file_, std::move(cursor_));
        return true;
      }
      std::string piece = cursor_.source->next();
      cursor_.ended = piece.empty();
      cursor_.begin = cursor_.end();
      cursor_.piece = std::move(piece);
      if (!cursor_.ended) file_.cursors_->mark(&file_, cursor_);
    }
    return false;
  }
  void answer(std::exception_ptr error) {
    const Bytes bytes = std::as_bytes(std::span(text_));
    const ReadDone done = std::exchange(done_, nullptr);
    if (error)
      done({}, std::move(error));
    else
      done({&bytes, 1}, nullptr);
  }

  StreamedFile& file_;
  const std::uint64_t offset_, size_;
  ReadDone done_;
  TextCursors::Cursor cursor_;
  std::string text_;
};

void StreamedFile::read(std::uint64_t offset, std::uint64_t size, ReadDone done) {
  Reading::run(std::make_shared<Reading>(*this, offset, size, std::move(done)));
}

std::optional<std::uint64_t> length_up_to(TextSource& text, std::uint64_t limit) {
  std::uint64_t length = 0;
  while (length <= limit) {
    const std::size_t more = text.next().size();
    if (more == 0) return length;
    length += more;
  }
  return std::nullopt;
}

}  // namespace batchfs
