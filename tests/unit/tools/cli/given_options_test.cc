#include "tools/cli/given_options.h"

#include <gtest/gtest.h>

#include "tools/cli/stores/store_settings.h"

namespace batchfs {
namespace given_options_test {

StoreOptions parsed(std::vector<std::string> words) {
  StoreOptions options;
  CLI::App app;
  add_store_options(app, options);
  add_other_stores(app, options);
  std::reverse(words.begin(), words.end());
  app.parse(words);
  enter_given_options(app, options);
  return options;
}

std::string words(const std::vector<std::string>& typed) { return words_of(parsed(typed).given); }

TEST(GivenOptions, AreThoseThatChangeHowAStoreIsOpened) {
  EXPECT_EQ(words({"s3://x/y"}), "");
  EXPECT_EQ(
      words({"--threads", "3", "--group", "g", "s3://x/y", "--anon", "--region=eu-west-1",
             "--virtual", "s3://a/", "--virtual", "file:///a b/=/c/", "--memory", "1G"}),
      "--virtual s3://a/ --virtual 'file:///a b/=/c/' --anon --region eu-west-1 --memory 1G ");
}

TEST(GivenOptions, EveryOptionOfAStoreIsOne) {
  StoreOptions options;
  CLI::App app;
  add_engine_options(app, options);
  for (const CLI::Option* const option : app.get_options()) {
    const std::string name = option->get_lnames().front();
    if (name == "help" || name == "threads" || name == "group") continue;
    StoreOptions given;
    given.given[name] = {"1"};
    EXPECT_EQ(words_of(given.given), "--" + name + " 1 ");
  }
}

TEST(GivenOptions, SecretsAreLeftOut) {
  EXPECT_EQ(words({"x", "--virtual", "s3://a/=https://me:word@host/a@b/?sig=c", "--endpoint",
                   "https://me@host"}),
            "--virtual 's3://a/=https://...@host/a@b/?...' --endpoint https://...@host ");
}

TEST(GivenOptions, FurtherStoresHaveTheirOwn) {
  StoreOptions options =
      parsed({"x", "--branch", "b", "--region", "r", "--array", "a", "--store", "rain=/y",
              "--store-option", "rain.region=q", "--store-option", "rain.anon"});
  StoreOptions own;
  own.given = given_for_others(options.given);
  EXPECT_EQ(words_of(own.given), "--region r ");
  apply_store_settings(options, "rain", own);
  EXPECT_EQ(words_of(own.given), "--anon --region q ");
}

TEST(GivenOptions, WordsForAShell) {
  EXPECT_EQ(shell_word("s3://a/b-c_d.zarr"), "s3://a/b-c_d.zarr");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace given_options_test
}  // namespace batchfs
