#include "engine/zarr/metadata_json.h"

#include <gmock/gmock.h>

#include "engine/base/json_text.h"
#include "engine/base/limits.h"

namespace batchfs {
namespace metadata_json_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

struct Parsed {
  Json json;
  DocumentNotes notes;
};

Parsed parsed(const std::string& key, const std::string& text) {
  Parsed result;
  result.json = parse_metadata(text, key, kMaxJsonMemory, result.notes);
  return result;
}

std::string refusal(const std::string& key, const std::string& text) {
  try {
    parsed(key, text);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
}

TEST(MetadataJson, AttributesAreRepairedAndNoted) {
  for (const char* key : {".zattrs", "a/t/.zattrs"}) {
    const Parsed two = parsed(key, R"({"units": "\udcb0C", "valid": [0, 1e400], "ok": 1})");
    EXPECT_EQ(python_json_text(two.json, -1),
              "{\"units\":\"\xef\xbf\xbd"
              "C\",\"valid\":[0,Infinity],\"ok\":1}");
    EXPECT_THAT(two.notes.repaired,
                ElementsAre(Pair(key, HasSubstr("'units' has text that is not Unicode")),
                            Pair(key, HasSubstr("'valid' has a number beyond float64"))));
  }
  const Parsed three = parsed(
      "t/zarr.json", R"({"shape": [3], "attributes": {"\udcb0": 1, "b": {"c": ["\udcb0"]}}})");
  EXPECT_THAT(three.notes.repaired, ElementsAre(Pair("t/zarr.json", HasSubstr("'\xef\xbf\xbd'")),
                                                Pair("t/zarr.json", HasSubstr("'b'"))));
  EXPECT_EQ(three.json["shape"][0], 3);
}

TEST(MetadataJson, OtherMetadataIsRefused) {
  EXPECT_THAT(refusal("t/.zarray", R"({"fill_value": 1e400})"),
              HasSubstr("'fill_value' has a number beyond float64 (t/.zarray)"));
  EXPECT_THAT(refusal("t/zarr.json", R"({"attributes": {}, "codecs": [{"name": "\udcb0"}]})"),
              HasSubstr("'codecs..name' has text that is not Unicode"));
  EXPECT_THAT(refusal("t/zarr.json", R"({"\udcb0": 1})"), HasSubstr("not Unicode"));
  EXPECT_THAT(refusal("t/zarr.json", R"({"attributes": 1e400})"), HasSubstr("'attributes'"));
  EXPECT_THAT(refusal(".zgroup", R"({"zarr_format": 1e400})"), HasSubstr("'zarr_format'"));
  EXPECT_NE(refusal("x.zattrs", R"({"a": 1e400})"), "");
  EXPECT_NE(refusal(".zattrs", "[1e400"), "");
}

TEST(MetadataJson, OfConsolidatedMetadataOneNodeIsLeftOut) {
  const Parsed two = parsed(".zmetadata", R"({"zarr_consolidated_format": 1, "metadata": {
    ".zgroup": {"zarr_format": 2}, "a/.zarray": {"fill_value": 1e400}, "a/.zattrs": {"u": "\udcb0"},
    "\udcb0/.zarray": {"shape": [1]}, "b/.zarray": {"shape": [1]}}})");
  EXPECT_EQ(two.json["metadata"], (Json{{".zgroup", {{"zarr_format", 2}}},
                                        {"a/.zattrs", {{"u", "\xef\xbf\xbd"}}},
                                        {"b/.zarray", {{"shape", {1}}}}}));
  EXPECT_THAT(two.notes.left_out,
              ElementsAre(Pair("a/.zarray", HasSubstr("'fill_value' has a number")),
                          Pair("\xef\xbf\xbd/.zarray", HasSubstr("its name has text"))));
  EXPECT_THAT(two.notes.repaired, ElementsAre(Pair("a/.zattrs", HasSubstr("'u'"))));
  const Parsed three = parsed("zarr.json", R"({"node_type": "group", "attributes": {"g": 1e999},
    "consolidated_metadata": {"metadata": {
    "a": {"fill_value": 1e400, "attributes": {"u": "\udcb0"}},
    "b": {"shape": [1], "attributes": {"u": "\udcb0"}}, "c\udcb0": {}}}})");
  EXPECT_EQ(three.json["consolidated_metadata"]["metadata"],
            (Json{{"b", {{"shape", {1}}, {"attributes", {{"u", "\xef\xbf\xbd"}}}}}}));
  EXPECT_THAT(three.notes.left_out,
              ElementsAre(Pair("a/zarr.json", HasSubstr("'fill_value' has a number")),
                          Pair("c\xef\xbf\xbd/zarr.json", HasSubstr("its name"))));
  EXPECT_THAT(three.notes.repaired, ElementsAre(Pair("zarr.json", HasSubstr("'g'")),
                                                Pair("a/zarr.json", HasSubstr("'u'")),
                                                Pair("b/zarr.json", HasSubstr("'u'"))));
  EXPECT_THAT(refusal(".zmetadata", R"({"metadata": 1e400})"), HasSubstr("'metadata'"));
}

TEST(MetadataJson, NotesAreBounded) {
  std::string text = R"({"a": ["\udcb0")";
  for (int i = 0; i < 1000; ++i) text += R"(, "\udcb0")";
  text += "]";
  for (int i = 0; i < 1000; ++i) text += ", \"b" + std::to_string(i) + "\": 1e400";
  EXPECT_EQ(parsed(".zattrs", text + "}").notes.repaired.size(), 64u);
}

TEST(MetadataJson, JsonHasNoNotes) {
  const Parsed plain = parsed(".zattrs", R"({"a": [1, NaN]})");
  EXPECT_THAT(plain.notes.repaired, IsEmpty());
  EXPECT_THAT(plain.notes.left_out, IsEmpty());
}

}  // namespace metadata_json_test
}  // namespace batchfs
