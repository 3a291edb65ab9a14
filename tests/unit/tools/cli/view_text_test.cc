#include "tools/cli/view_text.h"

#include <filesystem>
#include <fstream>

#include <unistd.h>

#include <gmock/gmock.h>

#include "engine/base/error.h"

namespace batchfs {
namespace view_text_test {

struct ViewTextTest : testing::Test {
  ViewTextTest() { std::filesystem::create_directories(folder); }
  ~ViewTextTest() override { std::filesystem::remove_all(folder); }
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("batchfs-view-text-" + std::to_string(::getpid()));

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder / name) << text;
    return folder / name;
  }
};

TEST_F(ViewTextTest, AFilesNameSaysWhatItHolds) {
  for (const char* name : {"a.yaml", "a.yml", "a.YAML"}) {
    const ViewText view = read_view_text(write(name, "window: {time: 1}"));
    EXPECT_EQ(view.json, R"({"window":{"time":1}})");
    EXPECT_EQ(view.name, "a");
    EXPECT_EQ(view.folder, folder);
    EXPECT_EQ(view.where, "the view file '" + (folder / name).string() + "'");
  }
  EXPECT_EQ(read_view_text(write("a.json", "window: {time: 1}")).json, "window: {time: 1}");
  EXPECT_EQ(read_view_text(write("a.yaml.json", "{ /* */ }")).json, "{ /* */ }");
  EXPECT_THROW(read_view_text(folder / "no.yaml"), Error);
}

TEST_F(ViewTextTest, ALongOneIsRefusedBeforeItIsParsed) {
  const std::string most = "{" + std::string((2 << 20) - 2, ' ') + "}";
  EXPECT_EQ(read_view_text(write("most.json", most)).json, most);
  EXPECT_EQ(read_view_text("-", StandardInput{most, folder}).json, most);
  for (const std::string& name : {write("long.json", most + " "), write("long.yaml", most + " ")})
    try {
      read_view_text(name);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(), testing::HasSubstr("it has 2097153 bytes"));
    }
  EXPECT_THROW(read_view_text("-", StandardInput{most + " ", folder}), Error);
}

TEST_F(ViewTextTest, OneThatTakesMoreThanListsMayIsRefusedWithTheFigures) {
  constexpr std::uint64_t kMb = 1 << 20;
  std::string labels, tensors;
  for (int i = 0; i < 100'000; ++i) labels += (i == 0 ? "" : ",") + std::to_string(i);
  for (int i = 0; i < 10'000; ++i) tensors += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":{}";
  for (const std::string& json :
       {R"({"select":{"time":[)" + labels + "]}}", R"({"tensors":{)" + tensors + "}}"}) {
    const ViewText view = read_view_text(write("v.json", json));
    EXPECT_NO_THROW(check_view_memory(view, 64 * kMb));
    try {
      check_view_memory(view, 16 * kMb);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::no_memory);
      EXPECT_THAT(error.what(),
                  testing::MatchesRegex("reading it takes up to 4.* MB of memory, and "
                                        "the lists of a view get 24.0 MB of 16.0 MB; "
                                        "give more with --memory.*"));
    }
  }
  const std::string text = R"({"name":")" + std::string(1'000'000, ',') + "\"}";
  EXPECT_NO_THROW(check_view_memory(read_view_text(write("text.json", text)), 16 << 10));
}

TEST_F(ViewTextTest, StandardInputIsReadBeforeAndByItsFirstCharacter) {
  const auto read = [&](const std::string& text) {
    return read_view_text("-", StandardInput{text, folder});
  };
  EXPECT_EQ(read(" \n// x\n{\"a\": 1}").json, " \n// x\n{\"a\": 1}");
  EXPECT_EQ(read("\xef\xbb\xbf{}").json, "\xef\xbb\xbf{}");
  EXPECT_EQ(read("# x\na: 1").json, R"({"a":1})");
  EXPECT_EQ(read("").json, "") << "which the parser of JSON refuses";
  EXPECT_EQ(read("a: 1").name, "view");
  EXPECT_EQ(read("a: 1").where, "standard input");
  EXPECT_EQ(read("a: 1").folder, folder);
}

TEST(StandardInput, IsForOneView) {
  EXPECT_FALSE(read_standard_input({"a.json", "./-"}));
  EXPECT_THROW(read_standard_input({"-", "a.json", "-"}), Error);
}

}  // namespace view_text_test
}  // namespace batchfs
