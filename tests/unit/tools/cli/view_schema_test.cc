#include "tools/cli/view_schema.h"

#include <gmock/gmock.h>

#include "engine/base/json.h"
#include "engine/dataset/calendar_fields.h"

namespace batchfs {
namespace view_schema_test {

// tests/conformance/schema_test.py holds it against views.
TEST(ViewSchema, IsJsonThatKnowsEveryPartOfADate) {
  const Json schema = parse_json(view_schema(), "the schema", {.unique_keys = true});
  EXPECT_EQ(schema.at("$schema"), "https://json-schema.org/draft/2020-12/schema");
  const Json& range = schema.at("$defs").at("range_keys").at("properties");
  for (int i = 0; i <= static_cast<int>(CalendarField::season); ++i)
    EXPECT_TRUE(range.contains(calendar_field_name(static_cast<CalendarField>(i)))) << i;
}

}  // namespace view_schema_test
}  // namespace batchfs
