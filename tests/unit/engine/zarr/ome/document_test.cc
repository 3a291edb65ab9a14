#include "engine/zarr/ome/document.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/zarr/ome/ome_data.h"

namespace batchfs {
namespace document_test {

using testing::HasSubstr;

std::string version_of(const std::string& text, const std::string& group = "") {
  const Json attributes = parse_json(text, "test");
  try {
    const auto found = find_ome(attributes, group);
    return found ? found->version : "none";
  } catch (const Error& error) {
    return error.why();
  }
}

TEST(OmeDocument, HasItsVersionWhereEachVersionWritesIt) {
  EXPECT_EQ(version_of(R"({"multiscales": [{"version": "0.4"}]})"), "0.4");
  EXPECT_EQ(version_of(R"({"plate": {"version": "0.4"}})"), "0.4");
  EXPECT_EQ(version_of(R"({"multiscales": [{"axes": []}]})"), "0.4");
  EXPECT_EQ(version_of(R"({"ome": {"version": "0.5", "multiscales": []}})"), "0.5");
  EXPECT_EQ(version_of(R"({"ome": {"version": "0.6.dev4", "multiscales": []}})"), "0.6");
  EXPECT_EQ(version_of(R"({"ome": {"multiscales": [{"coordinateSystems": []}]}})"), "0.6");
  EXPECT_EQ(version_of(R"({"ome": {"multiscales": []}})"), "0.5");
  EXPECT_EQ(version_of(R"({"multiscales": [{"version": "0.40"}]})"),
            "multiscales[0].version: OME-Zarr '0.40' is not supported; versions 0.1 to 0.6 are");
  EXPECT_EQ(version_of(R"({"multiscales": [{"version": 4}]})"),
            "multiscales[0].version: expected a string");
}

TEST(OmeDocument, IsNotMadeOfAttributesOfOthers) {
  for (const char* text :
       {R"({})", R"({"multiscales": {}})", R"({"multiscales": []})",
        R"({"multiscales": [{"datasets": []}]})", R"({"ome": {}})", R"({"ome": 3})",
        R"({"labels": ["a"]})", R"({"series": []})", R"({"plate": 1})", "[]"})
    EXPECT_EQ(version_of(text), "none") << text;
  EXPECT_EQ(version_of(R"({"labels": ["a"]})", "a/labels"), "0.4");
  EXPECT_EQ(version_of(R"({"labels": ["a"]})", "mylabels"), "none");
  EXPECT_EQ(version_of(R"({"series": []})", "OME"), "0.4");
}

TEST(OmeDocument, PathsStayInTheGroup) {
  const auto path = [](const std::string& text) {
    return ome_data::parsed(text, [](const JsonRef& json) { return path_below("g", json); });
  };
  const auto why = [](const std::string& text) {
    return ome_data::refusal(text, [](const JsonRef& json) { return path_below("g", json); });
  };
  EXPECT_EQ(path(R"("0")"), "g/0");
  EXPECT_EQ(path(R"("a/b/")"), "g/a/b");
  for (const char* text : {R"("")", R"("..")", R"("a/../b")", R"("/a")", R"("a//b")", R"(".")"})
    EXPECT_THAT(why(text), HasSubstr("is not the path of a node in this group")) << text;
  EXPECT_EQ(why("3"), "v: expected a string");
  EXPECT_LT(why("\"" + std::string(100000, '/') + "\"").size(), 400u);
}

}  // namespace document_test
}  // namespace batchfs
