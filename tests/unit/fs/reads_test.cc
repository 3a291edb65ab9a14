#include "fs/reads.h"

#include <cerrno>
#include <future>

#include <gtest/gtest.h>

#include "tests/unit/fs/mounted.h"

namespace batchfs {
namespace reads_test {

using namespace std::chrono_literals;

/// A file that answers when the test says so.
class HeldFile final : public OpenFile {
 public:
  void read(std::uint64_t offset, std::uint64_t size, ReadDone done) override {
    if (throws) throw Error(ErrorCode::io, "no");
    asked.emplace_back(offset, size);
    reads.push_back(std::move(done));
  }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> asked;
  std::vector<ReadDone> reads;
  bool throws = false;
};

/// The answer of a read.
struct Answered {
  int times = 0, error = 0;
  std::string bytes;
};

class ReadsTest : public testing::Test {
 protected:
  // The pending reads of the file hold the file.
  ~ReadsTest() override { file_->reads.clear(); }

  Reads::Answer into(Answered& answer) {
    return [&answer](std::span<const OpenFile::Bytes> bytes, int error) {
      ++answer.times;
      answer.error = error;
      answer.bytes = Mounted::text_of(bytes);
    };
  }
  /// Reads through a handle of an earlier daemon and waits for the answer.
  Answered read_of_before(const std::string& path, std::uint64_t handle, std::uint64_t offset,
                          std::uint64_t size) {
    std::promise<void> done;
    Answered answer;
    const RequestToken token = reads_.begin([&](std::span<const OpenFile::Bytes> bytes, int error) {
      into(answer)(bytes, error);
      done.set_value();
    });
    reads_.start(token, handle, mounted_.ino_of(path), offset, size);
    EXPECT_EQ(done.get_future().wait_for(20s), std::future_status::ready);
    return answer;
  }

  Mounted mounted_{MemoryData().add("a", "<i2", {"x"}, {3}, std::vector<std::int16_t>{1, 2, 3})};
  OpenTable table_{nullptr, {}, mounted_.log()};
  Reads reads_{mounted_.served(), table_};
  const std::shared_ptr<HeldFile> file_ = std::make_shared<HeldFile>();
  const std::uint64_t handle_ = table_.open(1000, file_, false).handle;
  Answered answer_;
};

TEST_F(ReadsTest, TheFileAnswers) {
  const RequestToken token = reads_.begin(into(answer_));
  reads_.start(token, handle_, 1000, 7, 5);
  ASSERT_EQ(file_->asked, (std::vector<std::pair<std::uint64_t, std::uint64_t>>{{7, 5}}));
  EXPECT_EQ(answer_.times, 0);
  const std::string first = "by", second = "tes";
  const OpenFile::Bytes bytes[] = {std::as_bytes(std::span(first)),
                                   std::as_bytes(std::span(second))};
  file_->reads[0](bytes, nullptr);
  EXPECT_EQ(answer_.bytes, "bytes");
  EXPECT_EQ(answer_.error, 0);
  reads_.interrupt(token);  // too late
  EXPECT_EQ(answer_.times, 1);
}

TEST_F(ReadsTest, ErrorsBecomeErrnos) {
  reads_.start(reads_.begin(into(answer_)), handle_, 1000, 0, 5);
  file_->reads[0]({}, std::make_exception_ptr(Error(ErrorCode::timed_out, "slow")));
  EXPECT_EQ(answer_.error, ETIMEDOUT);
  Answered other;
  file_->throws = true;
  reads_.start(reads_.begin(into(other)), handle_, 1000, 0, 5);
  EXPECT_EQ(other.error, EIO);
  EXPECT_EQ(other.times, 1);
}

TEST_F(ReadsTest, ASignalEndsARead) {
  const RequestToken token = reads_.begin(into(answer_));
  reads_.start(token, handle_, 1000, 0, 5);
  reads_.interrupt(token);
  EXPECT_EQ(answer_.error, EINTR);
  file_->reads[0]({}, nullptr);  // the read was interrupted
  EXPECT_EQ(answer_.times, 1);
}

TEST_F(ReadsTest, ASignalBeforeTheStartIsNotedOnly) {
  const RequestToken token = reads_.begin(into(answer_));
  reads_.interrupt(token);
  EXPECT_EQ(answer_.times, 0);
  reads_.start(token, handle_, 1000, 0, 5);
  EXPECT_EQ(answer_.error, EINTR);
  EXPECT_EQ(answer_.times, 1);
  EXPECT_TRUE(file_->asked.empty());
}

TEST_F(ReadsTest, AHandleOfTheDaemonBeforeIsOpenedAgain) {
  const std::string text = mounted_.read("store.json");
  EXPECT_EQ(read_of_before("store.json", 77, 3, 10).bytes, text.substr(3, 10));
  const auto file = table_.find(77);
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(read_of_before("store.json", 77, 0, 1 << 20).bytes, text);
  EXPECT_EQ(table_.find(77), file);
  const std::string values = mounted_.read("arrays/a/values.npy");
  EXPECT_EQ(read_of_before("arrays/a/values.npy", 78, 4096, 10).bytes, values.substr(4096, 10));
}

TEST_F(ReadsTest, WhatIsLeftOfAControlFileIsStale) {
  EXPECT_EQ(read_of_before(".batchfs/status.json", 77, 10, 10).error, ESTALE);
  EXPECT_EQ(table_.find(77), nullptr);
  EXPECT_EQ(read_of_before(".batchfs/status.json", 77, 0, 2).bytes, "{\n");
}

TEST_F(ReadsTest, AnInodeThatIsNoneIsStale) {
  reads_.start(reads_.begin(into(answer_)), 77, Ino{1} << 62, 0, 10);
  EXPECT_EQ(answer_.error, ESTALE);
}

}  // namespace reads_test
}  // namespace batchfs
