#include "tools/cli/output.h"

#include <csignal>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "engine/base/descriptor.h"
#include "engine/base/error.h"

namespace batchfs {
namespace output_test {

TEST(Output, EverythingIsWrittenByTheEnd) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Descriptor read_end(ends[0]), write_end(ends[1]);
  Output output(write_end.get());
  output.write("one ");
  output.write(std::as_bytes(std::span(std::string_view("two"))));
  output.finish();
  char text[16];
  EXPECT_EQ(::read(read_end.get(), text, sizeof text), 7);
  EXPECT_EQ(std::string(text, 7), "one two");
}

TEST(Output, AFullDeviceIsAnError) {
  const Descriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_GE(full.get(), 0);
  Output output(full.get());
  EXPECT_THROW(
      {
        output.write("x");
        output.finish();
      },
      Error);
}

TEST(Output, ThatNobodyReadsEndsTheCommandQuietly) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  Descriptor read_end(ends[0]);
  const Descriptor write_end(ends[1]);
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  read_end = Descriptor();
  Output output(write_end.get());
  EXPECT_THROW(
      {
        output.write("x");
        output.finish();
      },
      ReaderWentAway);
  std::signal(SIGPIPE, before);
}

}  // namespace output_test
}  // namespace batchfs
