#include "engine/base/error.h"

#include <cerrno>
#include <new>
#include <stdexcept>

#include <gtest/gtest.h>

namespace batchfs {
namespace error_test {

TEST(Error, SaysWhyAndWhereOnce) {
  Error error(ErrorCode::corrupt, "the chunk is short");
  EXPECT_STREQ(error.what(), "the chunk is short");
  error.at("t2m/0.0").at("elsewhere");
  EXPECT_STREQ(error.what(), "the chunk is short (t2m/0.0)");
}

TEST(ErrorOf, AnErrorIsGivenAsItWas) {
  const Error error =
      error_of(std::make_exception_ptr(Error(ErrorCode::stale, "the chunk changed", "t2m/0.0")));
  EXPECT_EQ(error.code(), ErrorCode::stale);
  EXPECT_EQ(error.why(), "the chunk changed");
  EXPECT_EQ(error.where(), "t2m/0.0");
  EXPECT_STREQ(error.what(), "the chunk changed (t2m/0.0)");
}

TEST(ErrorOf, WhatElseIsThrownIsNamed) {
  const Error memory = error_of(std::make_exception_ptr(std::bad_alloc()));
  EXPECT_EQ(memory.code(), ErrorCode::no_memory);
  EXPECT_STREQ(memory.what(), "out of memory");
  const Error length = error_of(std::make_exception_ptr(std::length_error("vector::reserve")));
  EXPECT_EQ(length.code(), ErrorCode::internal);
  EXPECT_STREQ(length.what(), "vector::reserve");
  const Error number = error_of(std::make_exception_ptr(7));
  EXPECT_EQ(number.code(), ErrorCode::internal);
  EXPECT_STREQ(number.what(), "unknown");
}

TEST(ToErrno, StoreFailuresAreEio) {
  EXPECT_EQ(to_errno(ErrorCode::corrupt), EIO);
  EXPECT_EQ(to_errno(ErrorCode::io), EIO);
  EXPECT_EQ(to_errno(ErrorCode::not_found), ENOENT);
  EXPECT_EQ(to_errno(ErrorCode::timed_out), ETIMEDOUT);
}

}  // namespace error_test
}  // namespace batchfs
