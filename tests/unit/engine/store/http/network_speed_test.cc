#include "engine/store/http/network_speed.h"

#include <gtest/gtest.h>

namespace batchfs {

namespace network_speed_test {

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(NetworkSpeed, IsUnknownAtFirst) {
  NetworkSpeed speed;
  EXPECT_FALSE(speed.known());
  speed.note(kSecond, 0.1, 1000);
  EXPECT_FALSE(speed.known());
}

TEST(NetworkSpeed, IsTheMeanLatencyAndTheBestRate) {
  NetworkSpeed speed;
  speed.note(1 * kSecond, 0.1, 0);
  speed.note(2 * kSecond, 0.3, 5000);
  speed.note(3 * kSecond, 0.2, 6000);  // less was asked for
  ASSERT_TRUE(speed.known());
  EXPECT_NEAR(speed.known()->latency, 0.2, 1e-9);
  EXPECT_NEAR(speed.known()->rate, 5000 * 0.99, 1e-6);
}

}  // namespace network_speed_test

}  // namespace batchfs
