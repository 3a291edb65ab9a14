#include "engine/store/references/url_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/error.h"

namespace batchfs {
namespace url_template_test {

using references::TemplateNames;
using testing::HasSubstr;

const TemplateNames& names() {
  static const TemplateNames kNames{{{"u", "server.domain/path"}, {"f", "<{{c}}|{{d}}>"}},
                                    {{"i", 7}, {"j", -3}}};
  return kNames;
}
std::string rendered(const std::string& text) { return references::render(text, names()); }

std::string refusal(const std::string& text) {
  try {
    rendered(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(UrlTemplate, ReplacesNamesAndCalls) {
  EXPECT_EQ(rendered("no braces { } %"), "no braces { } %");
  EXPECT_EQ(rendered("http://{{u}}/{{ u }}"), "http://server.domain/path/server.domain/path");
  EXPECT_EQ(rendered("{{f(c='a b', d=\"x\")}}"), "<a b|x>");
  EXPECT_EQ(rendered("{{i}}.{{j}}"), "7.-3");
}

TEST(UrlTemplate, CalculatesAsPythonDoes) {
  EXPECT_EQ(rendered("{{(i + 1) * 1000}}"), "8000");
  EXPECT_EQ(rendered("{{i//2}} {{j//2}} {{j % 2}} {{ i%-4 }} {{-i//2*2+1-1}}"), "3 -2 1 -1 -8");
  EXPECT_EQ(rendered("{{2+3*4}} {{((2+3))*4}} {{- -5}}"), "14 20 5");
}

TEST(UrlTemplate, RefusesTheRestByName) {
  for (const char* text :
       {"{{u|upper}}", "{{i/2}}", "{{i**2}}", "{{u.x}}", "{{'a'}}", "{{}}", "{{i i}}", "{{f(c=i)}}",
        "{{f('a')}}", "{% for %}", "{# x #}", "{{(i}}", "{{f(c='a\\'b', d='')}}"})
    EXPECT_THAT(refusal(text), HasSubstr("jinja2")) << text;
  EXPECT_THAT(refusal("{{I}}"), HasSubstr("did you mean 'i'?"));
  EXPECT_THAT(refusal("{{f}}"), HasSubstr("takes arguments"));
  EXPECT_THAT(refusal("{{f(c='a')}}"), HasSubstr("'d' is neither"));
  EXPECT_THAT(refusal("{{u + 1}}"), HasSubstr("whole numbers"));
  EXPECT_THAT(refusal("{{i // 0}}"), HasSubstr("division by zero"));
  EXPECT_THAT(refusal("{{i"), HasSubstr("without }}"));
  EXPECT_THAT(refusal("{{9223372036854775807 + i}}"), HasSubstr("too large"));
  EXPECT_THAT(refusal("{{99999999999999999999}}"), HasSubstr("too large"));
  EXPECT_THAT(refusal("{{" + std::string(100, '(') + "1" + std::string(100, ')') + "}}"),
              HasSubstr("jinja2"));
  std::string many;
  for (int i = 0; i < 2000; ++i) many += "{{u}}";
  EXPECT_THAT(refusal(many), HasSubstr("16384 bytes"));
}

TEST(UrlTemplate, MakesCounts) {
  EXPECT_EQ(references::render_count("{{i*10}}", names()), 70u);
  EXPECT_EQ(references::render_count("0010", names()), 10u);
  EXPECT_EQ(references::render_count("1{{i}}", names()), 17u);
  for (const char* wrong : {"{{j}}", "x", "", "1.5", "{{u}}"})
    EXPECT_THROW(references::render_count(wrong, names()), Error) << wrong;
}

}  // namespace url_template_test
}  // namespace batchfs
