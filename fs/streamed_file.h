#pragma once
// Open files whose text is made as it is read.
//
// A text is made from its beginning on. Readers leave a cursor where they ended, from which the
// next read continues, and marks along the text that was made: a read at another place continues
// from the nearest of these. All files share a few cursors and marks, so open files cost no memory.
//
// A short distance is made in the thread that asks, which serves other requests too; a long one in
// steps that are posted.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "fs/files.h"
#include "fs/text_cursors.h"

namespace batchfs {

class StreamedFile final : public OpenFile {
 public:
  using Make = std::function<std::unique_ptr<TextSource>()>;
  /// Runs the work in another thread, or drops it.
  using Post = std::function<void(std::function<void()> work)>;

  /// Bytes of text that are made at a time. The rest of a longer read is posted.
  static constexpr std::uint64_t kStep = 1 << 20;

  StreamedFile(std::shared_ptr<TextCursors> cursors, Make make, Post post, Caching caching)
      : cursors_(std::move(cursors)),
        make_(std::move(make)),
        post_(std::move(post)),
        caching_(caching) {}
  ~StreamedFile() override { cursors_->drop(this); }

  Caching caching() const override { return caching_; }
  /// Precondition: the file lives until `done` is called. Work that is dropped is answered with
  /// interrupted.
  void read(std::uint64_t offset, std::uint64_t size, ReadDone done) override;

 private:
  class Reading;

  const std::shared_ptr<TextCursors> cursors_;
  const Make make_;
  const Post post_;
  const Caching caching_;
};

/// The length of a text if it is at most `limit` bytes; nullopt: it is longer.
std::optional<std::uint64_t> length_up_to(TextSource& text, std::uint64_t limit);

}  // namespace batchfs
