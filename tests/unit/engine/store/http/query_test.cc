#include "engine/store/http/query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace batchfs {
namespace query_test {

using testing::ElementsAre;
using testing::Pair;

TEST(Query, EncodesNamesAndValuesOnce) {  // as urllib.parse.urlencode(quote_via=quote, safe="~")
  EXPECT_EQ(encode_query({{"prefix", "a b/é+=&"}, {"delimiter", "/"}, {"x", ""}}),
            "prefix=a%20b%2F%C3%A9%2B%3D%26&delimiter=%2F&x=");
  EXPECT_EQ(encode_query({}), "");
}

TEST(Query, Decodes) {
  EXPECT_THAT(decode_query("sig=a%2Fb%3D%3d&flag&&a=b=c"),
              ElementsAre(Pair("sig", "a/b=="), Pair("flag", ""), Pair("a", "b=c")));
  EXPECT_TRUE(decode_query("").empty());
}

}  // namespace query_test
}  // namespace batchfs
