#include "engine/view/order/order_spec.h"

#include <gmock/gmock.h>

namespace batchfs {
namespace order_spec_test {

using testing::HasSubstr;

ViewSpec parse(const std::string& members) {
  return parse_view_spec(R"({"window": {"time": 1, "lat": 2}, )" + members + "}", "given", "f");
}

TEST(OrderSpec, EveryKeyIsRead) {
  const ViewSpec spec = parse(R"("order": {"shuffle": "block", "lanes": 1048576, "home": true,
                                 "span": {"lat": 2, "time": 8.0}},
                                 "epochs": {"count": 100, "samples": 7})");
  EXPECT_EQ(spec.order.lanes, 1 << 20);
  EXPECT_TRUE(spec.order.home);
  EXPECT_EQ(spec.span,
            (std::vector<std::pair<std::string, std::int64_t>>{{"lat", 2}, {"time", 8}}));
  EXPECT_EQ(spec.epochs, 100);
  EXPECT_EQ(spec.epoch_samples, 7);
  EXPECT_EQ(parse(R"("epochs": {"samples": 7})").epochs, 1);
  EXPECT_FALSE(parse(R"("epochs": {"count": 7})").epoch_samples);
  EXPECT_EQ(parse(R"("order": {})").order.lanes, 1);
}

TEST(OrderSpec, ResolvedKeysReadBackAsTheSame) {
  for (
      const char* members :
      {R"("order": {"shuffle": "block", "buffer": 2, "lanes": 4, "home": true, "span": {"time": 3}})",
       R"("order": {"shuffle": "block", "buffer": 1})", R"("order": {"lanes": 9})",
       R"("epochs": {"samples": 9})"}) {
    const ViewSpec spec = parse(members);
    const Json order = order_json(spec), epochs = epochs_json(spec);
    const ViewSpec again = parse(R"("order": )" + order.dump() + R"(, "epochs": )" + epochs.dump());
    EXPECT_EQ(order_json(again), order);
    EXPECT_EQ(epochs_json(again), epochs);
  }
  EXPECT_EQ(order_json(parse(R"("epochs": 1)")), (Json{{"shuffle", "none"}, {"seed", 0}}));
}

TEST(OrderSpec, MistakesAreNamed) {
  const std::pair<const char*, const char*> wrong[] = {
      {R"("order": {"lanes": 0})", "order.lanes: 0 is too small"},
      {R"("order": {"lanes": 1048577})", "order.lanes: 1048577 is too large"},
      {R"("order": {"lanes": "4"})", "order.lanes: expected a whole number"},
      {R"("order": {"span": 8})", "order.span: expected an object"},
      {R"("order": {"span": {"time": 0}})", "order.span.time: 0 is too small"},
      {R"("order": {"span": {"tim": 2}})",
       "order.span.tim: \"window\" has no dimension 'tim', did "
       "you mean 'time'?"},
      {R"("order": {"home": 1})", "order.home: expected true or false"},
      {R"("order": {"home": true, "lanes": 2})", "it goes with \"shuffle\": \"block\""},
      {R"("order": {"home": true, "shuffle": "block"})", "order.home: it goes with \"lanes\""},
      {R"("order": {"world": 2})", "order: unknown key 'world'"},
      {R"("epochs": {"count": 0})", "epochs.count: 0 is too small"},
      {R"("epochs": {"samples": 0})", "epochs.samples: 0 is too small"},
      {R"("epochs": {"samples": 1152921504606846977})",
       "epochs.samples: 1152921504606846977 is too"},
      {R"("epochs": {"length": 5})", "epochs: unknown key 'length': write \"samples\""},
  };
  for (const auto& [members, message] : wrong) {
    try {
      parse(members);
      ADD_FAILURE() << members;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(message)) << members;
    }
  }
}

TEST(OrderSpec, TheSourceOfTheGroups) {
  const char* sources = R"("sources": {"a": {}, "b": {"store": "b"}}, )";
  const auto with = [&](const std::string& order) {
    return parse(sources + (R"("order": {)" + order + "}"));
  };
  const ViewSpec spec = with(R"("shuffle": "block", "by": "b")");
  EXPECT_EQ(spec.order.by, "b");
  EXPECT_EQ(order_json(spec)["by"], "b");
  EXPECT_FALSE(order_json(with(R"("shuffle": "block")")).contains("by"));
  const auto refused = [&](const std::string& order) {
    try {
      with(order);
    } catch (const Error& error) {
      return error.why();
    }
    return std::string();
  };
  EXPECT_THAT(refused(R"("shuffle": "global", "by": "b")"), HasSubstr("order.by: it says whose"));
  EXPECT_THAT(refused(R"("shuffle": "block", "by": "bb")"),
              HasSubstr("order.by: \"sources\" has no 'bb', did you mean 'b'?"));
}

TEST(OrderSpec, XbatcherHasItsOwnOrder) {
  for (const char* members : {R"("order": {"lanes": 2})", R"("order": {"span": {"t": 2}})",
                              R"("order": {"home": false})", R"("epochs": {"samples": 5})"}) {
    try {
      parse_view_spec(R"({"xbatcher": {"input_dims": {"t": 1}}, )" + std::string(members) + "}",
                      "given", "f");
      ADD_FAILURE() << members;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("xbatcher's batches have their own order")) << members;
    }
  }
}

TEST(OrderSpec, PartialWindowsAreTheSameInEveryEpoch) {
  EXPECT_THROW(parse_view_spec(R"({"window": {"t": {"size": 2, "edge": "partial"}},
                                   "epochs": {"samples": 5}})",
                               "given", "f"),
               Error);
}

}  // namespace order_spec_test
}  // namespace batchfs
