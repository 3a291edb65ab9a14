#include "engine/store/references/reference_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/printable.h"

namespace batchfs {
namespace reference_builder_test {

using references::ReferenceTable;
using references::Target;
using testing::HasSubstr;

constexpr std::uint64_t kMemory = 1 << 20;

std::string text_of(const std::optional<Target>& target) {
  if (!target) return "missing";
  if (target->kind == Target::Kind::within)
    return std::string(reinterpret_cast<const char*>(target->bytes.data()), target->bytes.size());
  std::string text(target->file);
  if (target->kind == Target::Kind::range)
    text += " " + std::to_string(target->offset) + " " + std::to_string(target->length);
  return text;
}

std::vector<std::string> names(const ReferenceTable& table, const std::string& prefix) {
  std::vector<std::string> found;
  for (const Store::Entry& entry : table.list(prefix, "here"))
    found.push_back(entry.name + (entry.is_prefix ? "/" : ""));
  return found;
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::shared_ptr<const ReferenceTable> table_of(
    std::initializer_list<std::pair<std::string, std::uint64_t>> ranges) {
  ReferenceTable::Builder builder(kMemory);
  for (const auto& [key, offset] : ranges) builder.add_range(key, "file", offset, 1);
  return builder.finish();
}

template <class Body>
std::string refusal(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ReferenceBuilder, AKeyThatNoReaderAsksForCostsItsArray) {
  for (const char* key : {"a//0", "a/../0", "a/\xff"}) {
    const auto table = table_of({{key, 0}, {"a/1", 0}, {"b/1", 0}});
    EXPECT_EQ(table->problems().size(), 1u) << key;
    EXPECT_EQ(text_of(table->find("a/1")), text_of(table->find("b/1"))) << key;
    EXPECT_THAT(refusal([&] { table->find("a/0"); }), HasSubstr("no reference has this key"))
        << key;
    EXPECT_FALSE(table->find("a/.zattrs")) << key;
    EXPECT_FALSE(table->find("b/0")) << key;
  }
  for (const char* key : {"", "/a", "../a"}) EXPECT_FALSE(table_of({{key, 0}})->find("a/0")) << key;
}

TEST(ReferenceBuilder, AScalarsKeyOfVirtualizarrIsMissing) {
  const auto table = table_of({{"crs/", 0}, {"a/1", 0}});
  ASSERT_EQ(table->problems().size(), 1u);
  EXPECT_EQ(table->problems()[0].first, "crs/");
  EXPECT_FALSE(table->find("crs/0"));
}

TEST(ReferenceBuilder, ATileThatATiffFileDoesNotHoldIsMissing) {
  ReferenceTable::Builder builder(kMemory);
  builder.add_range("a/0", "file", 0, 0);
  builder.add_range("a/1", "file", 0, 1);
  const auto table = builder.finish();
  EXPECT_FALSE(table->find("a/0"));
  EXPECT_TRUE(table->find("a/1"));
  EXPECT_TRUE(table->problems().empty());
}

TEST(ReferenceBuilder, RefusesWhatCannotBe) {
  EXPECT_THAT(refusal([] { table_of({{"a", UINT64_MAX}}); }), HasSubstr("past the end"));
  EXPECT_THAT(refusal([] {
                ReferenceTable::Builder builder(kMemory);
                builder.add_range("a", "f", 1, 0);
              }),
              HasSubstr("without bytes"));
  EXPECT_THAT(refusal([] {
                ReferenceTable::Builder builder(2000);
                for (int i = 0; i < 100; ++i)
                  builder.add_range("a/" + std::to_string(i), "f", 0, 1);
              }),
              HasSubstr("--memory"));
}

TEST(ReferenceBuilder, AMalformedReferenceIsAnErrorOfItsReader) {
  ReferenceTable::Builder builder(kMemory);
  builder.add_range("a/0", "file", 0, 1);
  builder.add_malformed("a/1", "it is green");
  builder.add_malformed("b/.zarray", "it is green");
  const auto table = builder.finish();
  EXPECT_EQ(text_of(table->find("a/0")), "file 0 1");
  for (const char* key : {"a/1", "b/.zarray"}) {
    EXPECT_TRUE(table->has(key)) << key;
    EXPECT_THAT(refusal([&] { table->find(key); }), HasSubstr("malformed: it is green")) << key;
  }
  EXPECT_EQ(table->problems(),
            (ReferenceTable::Problems{{"a/1", "it is green"}, {"b/.zarray", "it is green"}}));
}

TEST(ReferenceBuilder, ReasonsAndProblemsAreBounded) {
  ReferenceTable::Builder builder(16 << 20);
  for (int i = 0; i < 3000; ++i)
    builder.add_malformed("a/" + std::to_string(i), std::to_string(i) + std::string(5000, 'x'));
  const auto table = builder.finish();
  EXPECT_EQ(table->problems().size(), 1000u);
  EXPECT_LT(table->problems()[0].second.size(), 1000u);
  EXPECT_THAT(refusal([&] { table->find("a/2999"); }), HasSubstr("is not a reference"));
  EXPECT_THAT(refusal([&] { table->find("a/999"); }), HasSubstr("999xxx"));
}

TEST(ReferenceBuilder, AKeyThatIsGivenTwiceIsMalformed) {
  const auto table = table_of({{"a/0.0", 0},
                               {"a/1.1", 5},
                               {"a/0.0", 1},
                               {"a/2.0", 6},
                               {"a/0.0", 1},
                               {"a/2.0", 6},
                               {"b/x", 0},
                               {"b/x", 1},
                               {"b/y", 7}});
  for (const char* key : {"a/0.0", "a/2.0", "b/x"})
    EXPECT_THAT(refusal([&] { table->find(key); }), HasSubstr("given twice")) << key;
  EXPECT_EQ(text_of(table->find("a/1.1")), "file 5 1");
  EXPECT_EQ(text_of(table->find("b/y")), "file 7 1");
  EXPECT_EQ(table->problems().size(), 3u);
  EXPECT_EQ(names(*table, "a"), (std::vector<std::string>{"0.0", "1.1", "2.0"}));
}

TEST(ReferenceBuilder, ChunksFarFromTheOthersAreFound) {
  for (const std::string far :
       {"a/4294967295.4294967295.4294967295", "a/3000000000.5.4000000000"}) {
    const auto table =
        table_of({{far, 1}, {"a/0.0.0", 2}, {"a/1.2.3", 3}, {"b/0/4294967295", 4}, {"b/7/0", 5}});
    EXPECT_EQ(text_of(table->find(far)), "file 1 1");
    EXPECT_EQ(text_of(table->find("a/0.0.0")), "file 2 1");
    EXPECT_EQ(text_of(table->find("a/1.2.3")), "file 3 1");
    EXPECT_EQ(text_of(table->find("b/0/4294967295")), "file 4 1");
    EXPECT_EQ(text_of(table->find("b/7/0")), "file 5 1");
    EXPECT_FALSE(table->find("a/0.0.1"));
    EXPECT_EQ(names(*table, "a").size(), 3u);
    EXPECT_EQ(names(*table, "b"), (std::vector<std::string>{"0/", "7/"}));
    EXPECT_EQ(names(*table, "b/0"), (std::vector<std::string>{"4294967295"}));
  }
  EXPECT_THAT(refusal([] {
                table_of({{"a/4294967295.0", 0}, {"a/4294967295.0", 0}})->find("a/4294967295.0");
              }),
              HasSubstr("given twice"));
}

TEST(ReferenceBuilder, AKeyThatNobodyAsksForDamagesTheArrayThatItMayMean) {
  const std::map<std::string, std::string> cases{
      {"a//0", "a/0"},           {"/a/0", "a/0"},
      {"//a//0", "a/0"},         {"./a/0", "a/0"},
      {"a/./0.1", "a/0.1"},      {"a/0/", "a/0"},
      {"a/0.0/", "a/0.0"},       {"a/c//0/1", "a/c/0/1"},
      {"a/c/0//1", "a/c/0/1"},   {"a/c/0/1/", "a/c/0/1"},
      {"a/c/0/./1", "a/c/0/1"},  {"x/../a/0", "a/0"},
      {"a/../0", "a/0"},         {"a/\xff", "a/7"},
      {"a/c/0/\xff", "a/c/0/1"}, {std::string(300, 'p') + "//0", std::string(300, 'p') + "/0"}};
  for (const int others : {0, 1500})
    for (const auto& [bad, meant] : cases) {
      ReferenceTable::Builder builder(1 << 20);
      for (int i = 0; i < others; ++i) builder.add_whole("other//" + std::to_string(i), "f");
      builder.add_whole(bad, "file");
      builder.add_whole("fine/0", "file");
      const auto table = builder.finish();
      EXPECT_THAT(refusal([&] { table->find(meant); }),
                  HasSubstr("that of '" + printable(bad.substr(0, 200))))
          << bad;
      EXPECT_TRUE(table->find("fine/0"));
      EXPECT_FALSE(table->find("fine/1"));
      EXPECT_FALSE(table->find("fine/.zattrs"));
      EXPECT_GT(table->memory(), 0u);
    }
}

TEST(ReferenceBuilder, PathsOfKeysThatNobodyAsksForCount) {
  ReferenceTable::Builder builder(1 << 20);
  EXPECT_THAT(refusal([&] {
                for (int i = 0; i < 100'000; ++i)
                  builder.add_whole(std::to_string(i) + "x//0", "f");
              }),
              HasSubstr("--memory"));
}

}  // namespace reference_builder_test
}  // namespace batchfs
