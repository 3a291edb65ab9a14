#include "engine/array/string_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/error.h"

namespace batchfs {
namespace string_form_test {

using Strings = std::vector<std::string>;
using testing::HasSubstr;

Strings decode(const std::string& codec, const char* configuration, std::string_view bytes,
               std::int64_t count, Kind kind = Kind::variable_string) {
  const CodecSpec spec{codec, parse_json(configuration, "t")};
  return make_string_form(spec, kind)
      ->decode(std::as_bytes(std::span(bytes)), count, UINT64_MAX / 4);
}

std::string refusal(const std::string& codec, const char* configuration, std::string_view bytes,
                    std::int64_t count, Kind kind = Kind::variable_string) {
  try {
    decode(codec, configuration, bytes, count, kind);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(StringForm, BytesNeedNotBeText) {
  const std::string_view stored("\2\0\0\0\2\0\0\0\xff\0\0\0\0\0", 14);
  EXPECT_EQ(decode("vlen-bytes", "{}", stored, 2, Kind::variable_bytes),
            (Strings{std::string("\xff\0", 2), ""}));
  EXPECT_THAT(refusal("vlen-utf8", "{}", stored, 2), HasSubstr("not UTF-8"));
  EXPECT_THAT(refusal("vlen-utf8", "{}", stored, 2, Kind::variable_bytes),
              HasSubstr("bytes of any length under the codec 'vlen-utf8'"));
  EXPECT_THAT(refusal("vlen-bytes", "{}", stored, 2), HasSubstr("strings of any length under"));
}

// numcodecs.JSON().encode(np.array([["a", "bé"], ["", None]], object))
TEST(StringForm, Json) {
  const char* stored = R"([["a","b\u00e9"],["",null],"|O",[2,2]])";
  EXPECT_EQ(decode("json2", "{}", stored, 4), (Strings{"a", "b\u00e9", "", ""}));
  EXPECT_EQ(decode("json2", "{}", R"(["a","|O",[]])", 1), Strings{"a"});
  EXPECT_EQ(decode("json2", "{}", R"(["|O",[0]])", 0), Strings());
  EXPECT_THAT(refusal("json2", "{}", stored, 3), HasSubstr("4 strings, 3 were expected"));
  EXPECT_THAT(refusal("json2", "{}", R"([{"a":1},"|O",[1]])", 1), HasSubstr("only strings"));
  EXPECT_THAT(refusal("json2", "{}", R"([1.5,"|O",[1]])", 1), HasSubstr("only strings"));
  EXPECT_THAT(refusal("json2", "{}", R"([NaN,"|O",[1]])", 1), HasSubstr("the chunk of JSON"));
  for (const char* bad : {"", "[", "{}", "[]", R"(["|O"])", R"(["a",[1]]x)", R"(["a",1,[1]])"})
    EXPECT_THAT(refusal("json2", "{}", bad, 1), HasSubstr("the chunk of JSON")) << bad;
  EXPECT_THAT(refusal("json2", "{}", std::string(100, '['), 1), HasSubstr("the chunk of JSON"));
}

TEST(StringForm, Categories) {
  const char* labels = R"({"labels": ["a", "b"], "dtype": "|O", "astype": "|u1"})";
  EXPECT_EQ(decode("categorize", labels, std::string_view("\2\0\1\3", 4), 4),
            (Strings{"b", "", "a", ""}));
  EXPECT_EQ(decode("categorize", R"({"labels": ["a", "b"], "astype": ">i2"})",
                   std::string_view("\0\2\xff\xff", 4), 2),
            (Strings{"b", ""}));
  EXPECT_THAT(refusal("categorize", labels, "\1\1", 3), HasSubstr("2 strings, 3 were expected"));
  EXPECT_THAT(refusal("categorize", R"({"labels": ["a"], "astype": "<i2"})", "\1\1\1", 1),
              HasSubstr("were expected"));
  EXPECT_THAT(refusal("categorize", R"({"labels": ["a"], "astype": "<f4"})", "", 1),
              HasSubstr("not whole numbers"));
  EXPECT_THAT(refusal("categorize", "{}", "", 1), HasSubstr("labels"));
}

TEST(StringForm, AChunkOfFewBytesDoesNotMakeMany) {
  const std::string labels =
      R"({"labels": [")" + std::string(1000, 'x') + R"("], "astype": "|u1"})";
  const auto form =
      make_string_form({"categorize", parse_json(labels, "t")}, Kind::variable_string);
  const std::string codes(100, '\1');
  const auto bytes = std::as_bytes(std::span(codes));
  EXPECT_EQ(form->decode(bytes, 100, 100'000).back().size(), 1000U);
  try {
    form->decode(bytes, 100, 99'999);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::no_memory);
    EXPECT_THAT(error.what(), HasSubstr("give more with --memory"));
  }
}

}  // namespace string_form_test
}  // namespace batchfs
