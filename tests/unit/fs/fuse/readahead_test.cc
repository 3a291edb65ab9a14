#include "fs/fuse/readahead.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/store/temporary_directory.h"

// That root can raise it for a mount is tested with a mount: tests/mount/test_semantics_reading.py.

namespace batchfs {
namespace readahead_test {

TEST(Readahead, OfAPathThatIsNotThereIsNotKnown) {
  TemporaryDirectory directory;
  EXPECT_EQ(raise_readahead((directory.path() / "missing").string(), 1 << 20), 0u);
}

TEST(Readahead, OfAFileSystemWithoutOneIsNotKnown) {
  EXPECT_EQ(raise_readahead("/proc", 1 << 20), 0u);
}

}  // namespace readahead_test
}  // namespace batchfs
