#include "tools/cli/repository_options.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace repository_options_test {

constexpr std::int64_t kMicro = 1'000'000;

TEST(RepositoryOptions, ReadsTimes) {
  EXPECT_EQ(parse_time_of_day("1970-01-01"), 0);
  EXPECT_EQ(parse_time_of_day("2023-11-14T22:13:20Z"), 1'700'000'000 * kMicro);
  EXPECT_EQ(parse_time_of_day("2023-11-14 22:13:20"), 1'700'000'000 * kMicro);
  EXPECT_EQ(parse_time_of_day("2023-11-15T00:13:20.25+02:00"), 1'700'000'000 * kMicro + kMicro / 4);
  EXPECT_EQ(parse_time_of_day("1970-01-01T00:01-01:00"), 3660 * kMicro);
  for (const char* wrong :
       {"", "2023", "2023-13-01", "2023-02-30", "2023-01-01T", "2023-01-01T25:00", "2023-01-01T10",
        "2023-01-01T10:00:60", "2023-01-01T10:00:00.", "2023-01-01T10:00Zx", "now"})
    EXPECT_FALSE(parse_time_of_day(wrong)) << wrong;
}

struct Parsed : IcechunkOptions {
  VirtualOptions outside;
};

Parsed parse(std::vector<std::string> arguments) {
  CLI::App app;
  Parsed options;
  add_repository_options(app, options, options.outside);
  std::reverse(arguments.begin(), arguments.end());
  app.parse(arguments);
  return options;
}

TEST(RepositoryOptions, TakeOneVersion) {
  EXPECT_FALSE(parse({}).names_a_version());
  EXPECT_EQ(parse({"--branch", "dev", "--as-of", "1970-01-02"}).as_of, 86'400 * kMicro);
  EXPECT_EQ(parse({"--tag", "it works!"}).tag, "it works!");
  EXPECT_THROW(parse({"--as-of", "now"}), CLI::ParseError);
}

TEST(RepositoryOptions, TakeSeveralPlaces) {
  const Parsed options =
      parse({"--virtual", "s3://a/", "--virtual", "s3://b/=/copy", "--virtual-checks", "off"});
  EXPECT_EQ(options.outside.places, (std::vector<std::string>{"s3://a/", "s3://b/=/copy"}));
  EXPECT_FALSE(options.outside.checks);
}

}  // namespace repository_options_test
}  // namespace batchfs
