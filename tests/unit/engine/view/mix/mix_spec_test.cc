#include "engine/view/mix/mix_spec.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace mix_spec_test {

using testing::HasSubstr;

MixSpec parsed(const std::string& text) { return parse_mix_spec(text, "m", "f"); }

std::string refused(const std::string& text) {
  return error_of([&] { parsed(text); }).why();
}

TEST(MixSpec, FilesViewsAndShares) {
  const MixSpec spec = parsed(R"({"mix": {"a": {"view": "a.json", "part": "train", "weight": 2},
                                          "b": {"view": {"window": {"t": 1}}, "store": "s", "weight": 0}},
      "temperature": 3, "batch": {"size": 8, "mixing": "batch", "block": 4, "remainder": "drop"},
      "order": {"seed": 9}, "epochs": {"count": 2, "samples": 77}, "formats": ["npz"], "start": {"b": 5}})");
  ASSERT_EQ(spec.components.size(), 2u);
  EXPECT_EQ(spec.components[0].file, "a.json");
  EXPECT_EQ(spec.components[0].part, "train");
  EXPECT_EQ(spec.components[1].view, Json::parse(R"({"window": {"t": 1}})"));
  EXPECT_EQ(spec.components[1].store, "s");
  EXPECT_EQ(spec.components[1].start.samples, 5);
  EXPECT_EQ(spec.mixing, MixSpec::Mixing::batch);
  EXPECT_EQ(spec.block, 4);
  EXPECT_EQ(spec.view.name, "m");
  EXPECT_EQ(spec.view.batch_size, 8);
  EXPECT_EQ(spec.view.order.seed, 9u);
  EXPECT_EQ(spec.view.epoch_samples, 77);
  EXPECT_EQ(spec.view.formats, std::vector<std::string>{"npz"});
}

TEST(MixSpec, AStringIsTheViewAlone) {
  EXPECT_EQ(parsed(R"({"mix": {"a": "a.json"}})").components[0].file, "a.json");
}

TEST(MixSpec, IsKnownByItsKey) {
  EXPECT_TRUE(is_mixture(R"({"mix": 3} // comment)", "f"));
  EXPECT_FALSE(is_mixture(R"({"window": {"mix": 1}})", "f"));
  EXPECT_FALSE(is_mixture("[1]", "f"));
}

TEST(MixSpec, AnotherStartReplacesItsOwn) {
  const auto started = [](const std::string& text) {
    return with_mix_start(text, R"({"a": {"samples": 9, "left": [2]}})", "f");
  };
  for (const char* text : {R"({"mix": {"a": "a.json"}} // a comment)",
                           R"({"mix": {"a": "a.json", "b": "b.json"}, "start": {"b": 4}})"}) {
    const MixSpec spec = parsed(started(text));
    EXPECT_EQ(spec.components[0].start.samples, 9);
    EXPECT_EQ(spec.components[0].start.left, std::vector<std::int64_t>{2});
  }
  EXPECT_EQ(parsed(started(R"({"mix": {"a": "a.json", "b": "b.json"}, "start": {"b": 4}})"))
                .components[1]
                .start.samples,
            0);
  EXPECT_THAT(error_of([&] { started(R"({"window": {"t": 1}})"); }).why(),
              HasSubstr("the view is none"));
  EXPECT_THAT(error_of([] { with_mix_start(R"({"mix": {"a": "a"}})", "{", "f"); }).why(),
              HasSubstr("not valid JSON"));
}

TEST(MixSpec, Refusals) {
  EXPECT_THAT(refused(R"({"mix": {"a": "a.json"}, "split": {}})"),
              HasSubstr("split: a mixture has no \"split\" of its own"));
  EXPECT_THAT(refused(R"({"mix": {"a/b": "a.json"}})"), HasSubstr("cannot be a component's name"));
  EXPECT_THAT(refused(R"({"mix": {"a": {"view": "-"}}})"), HasSubstr("the name of a view's file"));
  EXPECT_THAT(refused(R"({"mix": {"a": {"view": "a", "weight": 1, "repeat": 2}}})"),
              HasSubstr("it has \"weight\" and \"repeat\""));
  EXPECT_THAT(
      refused(
          R"({"mix": {"a": {"view": "a", "weight": 1e308}, "b": {"view": "b", "weight": 1e308}}})"),
      HasSubstr("too large"));
  EXPECT_THAT(refused(R"({"mix": {"a": {"view": "a", "store": "s3://b"}}})"),
              HasSubstr("is not a name of a store"));
  EXPECT_THAT(
      refused(R"({"mix": {"a": "a"}, "batch": {"size": 1, "mixing": "stratified", "block": 3}})"),
      HasSubstr("a batch is the block"));
  EXPECT_THAT(refused(R"({"mix": {"a": "a"}, "temperature": 0})"), HasSubstr("a number above 0"));
  EXPECT_THAT(refused(R"({"mix": {"a": "a"}, "batch": {"sise": 3}})"), HasSubstr("batch"));
  EXPECT_THAT(refused(R"({"mix": {"a": "a"}, "weights": 3})"), HasSubstr("weights"));
}

}  // namespace mix_spec_test
}  // namespace batchfs
