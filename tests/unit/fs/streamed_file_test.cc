#include "fs/streamed_file.h"

#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "tests/unit/fs/mounted.h"

namespace batchfs {
namespace streamed_file_test {

/// "0 1 2 3 ... ", in pieces of different lengths.
class Numbers final : public TextSource {
 public:
  Numbers(int count, int* made) : count_(count), made_(made) {}
  std::string next() override {
    std::string piece;
    for (int i = 0; i < at_ % 7 + 1 && at_ < count_; ++i) piece += std::to_string(at_++) + " ";
    ++*made_;
    return piece;
  }

 private:
  const int count_;
  int* const made_;
  int at_ = 0;
};

struct StreamedFileTest : testing::Test {
  std::shared_ptr<StreamedFile> open(int count = 1000) {
    return std::make_shared<StreamedFile>(
        cursors, [this, count] { return std::make_unique<Numbers>(count, &made); },
        OpenFile::Caching::direct);
  }
  static std::string whole(int count = 1000) {
    std::string text;
    for (int i = 0; i < count; ++i) text += std::to_string(i) + " ";
    return text;
  }
  int made = 0;  // pieces
  const std::shared_ptr<TextCursors> cursors = std::make_shared<TextCursors>();
};

TEST_F(StreamedFileTest, IsMadeOnceForAReaderFromBeginningToEnd) {
  const auto file = open();
  std::string text;
  for (;;) {
    const std::string more = Mounted::read(*file, text.size(), 100);
    text += more;
    if (more.size() < 100) break;
  }
  EXPECT_EQ(text, whole());
  const int once = made;
  EXPECT_EQ(Mounted::read(*file, text.size(), 100), "");
  EXPECT_EQ(made, once);
  EXPECT_EQ(file->caching(), OpenFile::Caching::direct);
}

TEST_F(StreamedFileTest, IsReadFromAnyPlace) {
  const auto file = open();
  const std::string text = whole();
  for (const std::size_t at : {3000u, 17u, 0u, 2999u, 3889u, 3890u, 4000u, 100u})
    EXPECT_EQ(Mounted::read(*file, at, 50), at < text.size() ? text.substr(at, 50) : "") << at;
  EXPECT_EQ(Mounted::read(*file, 0, UINT64_MAX), text);
  EXPECT_EQ(Mounted::read(*file, UINT64_MAX - 5, 10), "");
}

TEST_F(StreamedFileTest, ReadersGoOnWhereEachOfThemWas) {
  const auto file = open(), other = open(500);
  const std::string text = whole();
  for (std::size_t at = 0; at < 1000; at += 100) {
    EXPECT_EQ(Mounted::read(*file, at, 100), text.substr(at, 100));
    EXPECT_EQ(Mounted::read(*file, at + 2000, 100), text.substr(at + 2000, 100));
    EXPECT_EQ(Mounted::read(*other, at, 100), text.substr(at, 100));
  }
  int all = 0;
  Numbers numbers(1000, &all);
  while (!numbers.next().empty()) {
  }
  EXPECT_LT(made, 3 * all);  // one pass each
}

TEST_F(StreamedFileTest, FilesShareAFewCursors) {
  std::vector<std::shared_ptr<StreamedFile>> files;
  for (std::size_t i = 0; i < 3 * TextCursors::kMax; ++i) {
    files.push_back(open());
    EXPECT_EQ(Mounted::read(*files.back(), 0, 10), whole().substr(0, 10));
  }
  EXPECT_EQ(cursors->take(files.front().get(), 1000).source, nullptr);
  EXPECT_NE(cursors->take(files.back().get(), 1000).source, nullptr);
  EXPECT_EQ(Mounted::read(*files.front(), 10, 10), whole().substr(10, 10));
  const void* const gone = files.back().get();
  EXPECT_EQ(Mounted::read(*files.back(), 0, 10).size(), 10u);
  files.pop_back();
  EXPECT_EQ(cursors->take(gone, 1000).source, nullptr);
  cursors->clear();
  EXPECT_EQ(cursors->take(files.front().get(), 1000).source, nullptr);
}

TEST_F(StreamedFileTest, AnErrorIsAnsweredAndTheNextReadBeginsAnew) {
  struct Failing final : TextSource {
    explicit Failing(int& count) : calls(count) {}
    std::string next() override {
      if (calls++ == 1) throw Error(ErrorCode::no_memory, "full");
      return at++ == 0 ? "abc" : "";
    }
    int& calls;
    int at = 0;
  };
  int calls = 0;
  StreamedFile file(
      cursors, [&] { return std::make_unique<Failing>(calls); }, OpenFile::Caching::kernel);
  std::exception_ptr error;
  file.read(0, 10, [&](auto, std::exception_ptr e) { error = e; });
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(error_of(error).code(), ErrorCode::no_memory);
  EXPECT_EQ(Mounted::read(file, 0, 10), "abc");
}

TEST_F(StreamedFileTest, LengthsAreCountedUpToALimit) {
  const std::uint64_t length = whole().size();
  for (const std::uint64_t limit : {length, length + 1, UINT64_MAX}) {
    Numbers numbers(1000, &made);
    EXPECT_EQ(length_up_to(numbers, limit), length);
  }
  Numbers numbers(1000, &made);
  EXPECT_EQ(length_up_to(numbers, length - 1), std::nullopt);
  Numbers many(1'000'000'000, &made);
  EXPECT_EQ(length_up_to(many, 10'000), std::nullopt);
}

}  // namespace streamed_file_test
}  // namespace batchfs
