#include "engine/write/run_identity.h"

#include <filesystem>

#include <unistd.h>

#include <gtest/gtest.h>

namespace batchfs {
namespace run_identity_test {

class RunIdentityTest : public testing::Test {
 protected:
  RunIdentityTest() { std::filesystem::remove_all(path_); }
  ~RunIdentityTest() override { std::filesystem::remove_all(path_); }
  const std::string path_ = testing::TempDir() + "run_identity-" + std::to_string(::getpid());
  const std::shared_ptr<OutputStore> output_ = open_local_output(path_);
};

TEST_F(RunIdentityTest, TheFirstClaimCounts) {
  const Json mine = {{"command", "check"}, {"view", "1"}}, other = {{"command", "check"}};
  EXPECT_THROW(read_identity(*output_), Error);
  claim_output(*output_, mine);
  EXPECT_NO_THROW(claim_output(*output_, mine));
  EXPECT_EQ(read_identity(*output_), mine);
  EXPECT_THROW(claim_output(*output_, other), Error);
  try {
    check_identity(*output_, mine, {{"command", "check"}, {"view", "2"}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.why().find("\"view\" differs"), std::string::npos) << error.why();
  }
}

TEST_F(RunIdentityTest, AFolderOfSomethingElseIsRefused) {
  output_->put("notes.txt", "mine");
  EXPECT_THROW(claim_output(*output_, {{"a", 1}}), Error);
}

TEST(RunIdentity, DigestsAreOfFixedLength) {
  // xxhsum -H3 of "abc"
  EXPECT_EQ(text_digest("abc"), "78af5f94892f3950");
  EXPECT_EQ(text_digest("").size(), 16u);
}

}  // namespace run_identity_test
}  // namespace batchfs
