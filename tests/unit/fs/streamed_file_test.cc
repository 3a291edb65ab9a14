#include "fs/streamed_file.h"

#include <deque>
#include <functional>
#include <random>

#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "tests/unit/fs/mounted.h"

namespace batchfs {
namespace streamed_file_test {

/// "0 1 2 3 ... ", in pieces of different lengths.
class Numbers final : public TextSource {
 public:
  Numbers(int count, int* made, std::uint64_t* bytes = nullptr)
      : count_(count), made_(made), bytes_(bytes) {}
  std::unique_ptr<TextSource> fork() const override { return std::make_unique<Numbers>(*this); }
  std::string next() override {
    std::string piece;
    for (int i = 0; i < at_ % 7 + 1 && at_ < count_; ++i) piece += std::to_string(at_++) + " ";
    ++*made_;
    if (bytes_ != nullptr) *bytes_ += piece.size();
    return piece;
  }

 private:
  const int count_;
  int* const made_;
  std::uint64_t* const bytes_;
  int at_ = 0;
};

struct StreamedFileTest : testing::Test {
  std::shared_ptr<StreamedFile> open(int count = 1000) {
    return std::make_shared<StreamedFile>(
        cursors, [this, count] { return std::make_unique<Numbers>(count, &made, &bytes); },
        [this](std::function<void()> work) { posted.push_back(std::move(work)); },
        OpenFile::Caching::direct);
  }
  /// Runs one piece of posted work; false where there is none.
  bool run_posted() {
    if (posted.empty()) return false;
    const auto work = std::move(posted.front());
    posted.pop_front();
    work();
    return true;
  }
  std::string read(OpenFile& file, std::uint64_t offset, std::uint64_t size) {
    std::optional<std::string> text;
    file.read(offset, size, [&](std::span<const OpenFile::Bytes> found, std::exception_ptr error) {
      EXPECT_EQ(error, nullptr);
      text = Mounted::text_of(found);
    });
    while (!text && run_posted()) {
    }
    EXPECT_TRUE(text.has_value());
    return text.value_or("");
  }
  static std::string whole(int count = 1000) {
    std::string text;
    for (int i = 0; i < count; ++i) text += std::to_string(i) + " ";
    return text;
  }
  int made = 0;  // pieces
  std::uint64_t bytes = 0;
  std::deque<std::function<void()>> posted;
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

/// Several megabytes, of which a piece has some twenty bytes.
constexpr int kMany = 700'000;

TEST_F(StreamedFileTest, ReadsAtRandomPlacesMakeNoMoreThanWhatLiesBetweenMarks) {
  const auto file = open(kMany);
  const std::string text = whole(kMany);
  ASSERT_GT(text.size(), 4u << 20);
  EXPECT_EQ(read(*file, text.size() - 10, 100), text.substr(text.size() - 10));
  EXPECT_LE(bytes, text.size());  // the first read far into it makes what is before
  std::mt19937_64 random(1);
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t at = i < 50 ? text.size() - text.size() * static_cast<unsigned>(i) / 50 - 1
                                    : random() % text.size();  // at first backwards
    bytes = 0;
    EXPECT_EQ(read(*file, at, 1000), text.substr(at, 1000));
    EXPECT_LE(bytes, 2 * TextCursors::kFirstDistance + 2000);
  }
}

TEST_F(StreamedFileTest, ALongDistanceIsMadeInPostedSteps) {
  const auto file = open(kMany);
  const std::string text = whole(kMany);
  std::string found;
  const auto read_end = [&] {
    file->read(text.size() - 5, 5, [&](auto runs, std::exception_ptr error) {
      EXPECT_EQ(error, nullptr);
      found = Mounted::text_of(runs);
    });
  };
  read_end();
  int steps = 1;
  do {
    EXPECT_LE(bytes, StreamedFile::kStep + 100);
    EXPECT_EQ(found, "");
    EXPECT_EQ(posted.size(), 1u);
    bytes = 0;
    ++steps;
  } while (run_posted() && !posted.empty());
  EXPECT_EQ(found, text.substr(text.size() - 5));
  EXPECT_EQ(steps, static_cast<int>(text.size() / StreamedFile::kStep) + 1);
  // A short distance is made at once.
  found = "";
  read_end();
  EXPECT_TRUE(posted.empty());
  EXPECT_EQ(found, text.substr(text.size() - 5));
}

TEST_F(StreamedFileTest, AReadWhoseWorkIsDroppedIsAnswered) {
  const auto file = open(kMany);
  std::exception_ptr error;
  file->read(3 << 20, 5, [&](auto, std::exception_ptr e) { error = e; });
  EXPECT_EQ(error, nullptr);
  posted.clear();
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(error_of(error).code(), ErrorCode::interrupted);
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
      cursors, [&] { return std::make_unique<Failing>(calls); }, [](auto) { FAIL(); },
      OpenFile::Caching::kernel);
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
