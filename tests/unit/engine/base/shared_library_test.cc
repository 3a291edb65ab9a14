#include "engine/base/shared_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/error.h"

namespace batchfs {
namespace shared_library_test {

template <class Body>
std::string failure(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_supported);
    return error.what();
  }
  return "no error";
}

TEST(SharedLibrary, GivesItsFunctions) {
  const SharedLibrary library("libm.so.6", "a test");
  double (*root)(double) = nullptr;
  library.find(root, "sqrt");
  EXPECT_EQ(root(9.0), 3.0);
  EXPECT_THAT(failure([&] { library.find(root, "square_root_of"); }),
              testing::HasSubstr("libm.so.6 has no square_root_of"));
}

TEST(SharedLibrary, SaysWhoNeedsWhatIsMissing) {
  EXPECT_THAT(failure([] { SharedLibrary("libnothing.so.9", "the codec 'x'"); }),
              testing::HasSubstr("the codec 'x' needs the library libnothing.so.9"));
}

}  // namespace shared_library_test
}  // namespace batchfs
