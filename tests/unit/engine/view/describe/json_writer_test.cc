#include "engine/view/describe/json_writer.h"

#include <gtest/gtest.h>

#include "engine/base/json_text.h"

namespace batchfs {
namespace json_writer_test {

void write(JsonWriter& out, const Json& value) {
  if (value.is_object()) {
    out.begin_object();
    for (const auto& [key, member] : value.items()) {
      out.key(key);
      write(out, member);
    }
    out.end_object();
  } else if (value.is_array()) {
    out.begin_array();
    for (const Json& element : value) write(out, element);
    out.end_array();
  } else if (value.is_number_integer()) {
    out.value(value.get<std::int64_t>());
  } else {
    out.value(value);
  }
}

TEST(JsonWriter, HasTheFormOfJsonText) {
  for (
      const char* text :
      {"{}", "[]", "1", "\"a\"", "null", "[[]]", "[{}, 1, {\"a\": []}]",
       R"({"a": {"b": [1, -2, {"c": 1.5}], "d\n\u202e": "line\nbreak \u202e \u00e9"}, "e": [[0], [1]]})",
       "[9223372036854775807, -9223372036854775808, true]"}) {
    const Json value = Json::parse(text);
    JsonWriter out;
    write(out, value);
    EXPECT_EQ(out.take(), json_text(value)) << text;
  }
}

TEST(JsonWriter, IndentsWholeValues) {
  const Json inner = Json::parse(R"({"a": [1, {"b": []}], "c": "x\ny"})");
  JsonWriter out;
  out.begin_object();
  out.key("k");
  out.begin_array();
  out.value(inner);
  out.value(inner);
  out.end_array();
  out.end_object();
  EXPECT_EQ(out.take(), json_text(Json{{"k", {inner, inner}}}));
}

TEST(JsonWriter, GivesEachPieceOnce) {
  JsonWriter out;
  out.begin_array();
  out.value(1);
  EXPECT_EQ(out.take(), "[\n  1");
  EXPECT_EQ(out.size(), 0u);
  out.value(2);
  out.end_array();
  out.end_line();
  EXPECT_EQ(out.take(), ",\n  2\n]\n");
}

}  // namespace json_writer_test
}  // namespace batchfs
