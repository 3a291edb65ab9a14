#include "engine/view/spec.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace spec_test {

using testing::HasSubstr;
using testing::StartsWith;

ViewSpec parse(const std::string& json) { return parse_view_spec(json, "given", "file.json"); }

TEST(ViewSpec, DefaultsAreFilledIn) {
  const ViewSpec spec = parse(R"({"window": {"time": 3}})");
  EXPECT_EQ(spec.name, "given");
  EXPECT_FALSE(spec.variables);
  EXPECT_TRUE(spec.select.empty());
  ASSERT_EQ(spec.window.size(), 1u);
  EXPECT_EQ(spec.window[0].dim, "time");
  EXPECT_EQ(spec.window[0].size, 3);
  EXPECT_EQ(spec.window[0].stride, 3);
  EXPECT_FALSE(spec.window[0].wrap);
  EXPECT_TRUE(spec.tensors.empty());
  EXPECT_EQ(spec.batch_size, 1);
  EXPECT_EQ(spec.remainder, ViewSpec::Remainder::keep);
  EXPECT_EQ(spec.order.shuffle, Order::Shuffle::none);
  EXPECT_EQ(spec.order.seed, 0u);
  EXPECT_EQ(spec.order.buffer, 0);  // the view decides
  EXPECT_EQ(spec.epochs, 1);
  EXPECT_FALSE(spec.dtype);
  EXPECT_EQ(spec.formats, std::vector<std::string>{"npy"});
  EXPECT_FALSE(spec.xbatcher);
}

TEST(ViewSpec, EveryKeyIsRead) {
  const ViewSpec spec = parse(R"({
    "name": "train", "variables": ["a", "b"], "select": {"level": [500, "850"], "time": {"from": "#1"}},
    "window": {"lat": {"size": 4, "stride": 2, "wrap": true, "edge": "drop"}, "time": 1.0},
    "tensors": {"x": {"variables": ["a", "b"], "offsets": {"time": [-1, 0]}, "stack": "c", "dims": ["c", "lat"]},
                "y": {"variables": ["a"]}},
    "batch": {"size": 32, "remainder": "pad"}, "order": {"shuffle": "block", "seed": 9223372036854775807, "buffer": 3},
    "epochs": 1000000000, "dtype": "float16", "missing": {"nan": "keep"}, "formats": ["zarr", "npz"]})");
  EXPECT_EQ(spec.name, "train");
  EXPECT_EQ(spec.variables, (std::vector<std::string>{"a", "b"}));
  ASSERT_EQ(spec.select.size(), 2u);
  ASSERT_EQ(spec.select[0].second.parts.size(), 2u);
  EXPECT_EQ(spec.select[0].second.parts[1].value, "850");
  EXPECT_EQ(spec.select[1].second.where, "select.time");
  EXPECT_EQ(spec.window[0].stride, 2);
  EXPECT_TRUE(spec.window[0].wrap);
  EXPECT_EQ(spec.window[1].size, 1);
  ASSERT_EQ(spec.tensors.size(), 2u);
  EXPECT_EQ(spec.tensors[0].offsets[0].second, (std::vector<std::int64_t>{-1, 0}));
  EXPECT_EQ(spec.tensors[0].stack, "c");
  EXPECT_EQ(spec.tensors[0].dims, (std::vector<std::string>{"c", "lat"}));
  EXPECT_EQ(spec.tensors[0].path, "tensors.x");
  EXPECT_EQ(spec.remainder, ViewSpec::Remainder::pad);
  EXPECT_EQ(spec.order.seed, static_cast<std::uint64_t>(INT64_MAX));
  EXPECT_EQ(spec.order.buffer, 3);
  EXPECT_EQ(spec.epochs, 1'000'000'000);
  EXPECT_EQ(spec.dtype->name(), "float16");
  EXPECT_EQ(spec.formats, (std::vector<std::string>{"zarr", "npz"}));
}

TEST(ViewSpec, OrderOfKeysIsKept) {
  const ViewSpec spec = parse(
      R"({"window": {"z": 1, "a": 1, "m": 1}, "tensors": {"q": {"variables": ["v"]}, "b": {"variables": ["v"]}}})");
  EXPECT_EQ(spec.window[0].dim + spec.window[1].dim + spec.window[2].dim, "zam");
  EXPECT_EQ(spec.tensors[0].name + spec.tensors[1].name, "qb");
}

TEST(ViewSpec, NumbersInPlaceOfObjects) {
  EXPECT_EQ(parse(R"({"window": {"t": 1}, "batch": 8})").batch_size, 8);
  EXPECT_EQ(parse(R"({"window": {"t": 1}, "batch": {}})").batch_size, 1);
}

TEST(ViewSpec, Xbatcher) {
  const ViewSpec spec =
      parse(R"({"xbatcher": {"input_dims": {"lon": 6, "lat": 5}, "input_overlap": {"lat": 0},
                                               "batch_dims": {"time": 10}, "concat_input_dims": true}})");
  ASSERT_TRUE(spec.xbatcher);
  using Sizes = std::vector<std::pair<std::string, std::int64_t>>;
  EXPECT_EQ(spec.xbatcher->input_dims, (Sizes{{"lon", 6}, {"lat", 5}}));
  EXPECT_EQ(spec.xbatcher->input_overlap, (Sizes{{"lat", 0}}));
  EXPECT_EQ(spec.xbatcher->batch_dims, (Sizes{{"time", 10}}));
  EXPECT_TRUE(spec.xbatcher->concat_input_dims);
}

struct Wrong {
  const char* json;  // members beside a valid window; a whole view when it begins with '{' or '['
  const char* message;  // how it begins
};

const Wrong kWrong[] = {
    // The document.
    {"[]", "a view is a JSON object"},
    {"{", "not valid JSON at line 1"},
    {"{} x", "not valid JSON at line 1, column 4"},
    {R"({"window": {"t": 1}, "window": {"x": 1}})", "the key 'window' is given twice"},
    {R"({"window": {"t": 1, "t": 2}})", "the key 't' is given twice"},
    {R"("epochs": NaN)", "not valid JSON"},
    {R"("epochs": 1e999)", "not valid JSON: a number is out of range"},
    {R"("shuffle": "none")", "unknown key 'shuffle'"},
    {R"("varaibles": ["a"])", "unknown key 'varaibles', did you mean 'variables'?"},
    // name
    {R"("name": 5)", "name: expected a string"},
    {R"("name": "")", "name: '' cannot be a file name"},
    {R"("name": "..")", "name: '..' cannot be a file name"},
    {R"("name": "a/b")", "name: 'a/b' cannot be a file name"},
    {R"("name": "a\u0000b")", "name: 'a"},
    {R"("name": "a\nb")", "name: 'a"},
    // variables
    {R"("variables": "a")", "variables: expected a list"},
    {R"("variables": [])", "variables: the list is empty"},
    {R"("variables": ["a", 5])", "variables[1]: expected a string"},
    {R"("variables": ["a", "a"])", "variables: 'a' is given twice"},
    // select
    {R"("select": ["a"])", "select: expected an object"},
    {R"("select": {"time": null})", "select.time: expected a label"},
    {R"("select": {"time": []})", "select.time: the list is empty"},
    {R"("select": {"time": [["a"]]})", "select.time[0]: expected a label"},
    {R"("select": {"time": {"from": 1, "until": 2}})", "select.time: unknown key 'until'"},
    {R"("select": {"time": {"frm": 1}})", "select.time: unknown key 'frm', did you mean 'from'?"},
    // window
    {R"({"name": "x"})", "the key 'window' is missing"},
    {R"({"window": {}})", "window: name at least one dimension"},
    {R"({"window": ["time"]})", "window: expected an object"},
    {R"({"window": {"time": 0}})", "window.time: 0 is too small, the least is 1"},
    {R"({"window": {"time": -1}})", "window.time: -1 is too small"},
    {R"({"window": {"time": 1.5}})", "window.time: expected a whole number"},
    {R"({"window": {"time": "1"}})", "window.time: expected a whole number"},
    {R"({"window": {"time": 18446744073709551615}})", "window.time: the number is too large"},
    {R"({"window": {"time": 1e15}})", "window.time: 1000000000000000 is too large"},
    {R"({"window": {"time": {}}})", "window.time: the key 'size' is missing"},
    {R"({"window": {"time": {"size": 0}}})", "window.time.size: 0 is too small"},
    {R"({"window": {"time": {"size": 1, "stride": 0}}})", "window.time.stride: 0 is too small"},
    {R"({"window": {"time": {"size": 1, "stride": true}}})",
     "window.time.stride: expected a whole number"},
    {R"({"window": {"time": {"size": 1, "wrap": 1}}})", "window.time.wrap: expected true or false"},
    {R"({"window": {"time": {"size": 4, "overlap": 1}}})",
     "window.time: unknown key 'overlap': write \"stride\": the size less the overlap"},
    {R"({"window": {"time": {"size": 4, "step": 1}}})",
     "window.time: unknown key 'step': write \"stride\""},
    {R"({"window": {"time": {"size": 1, "strid": 1}}})",
     "window.time: unknown key 'strid', did you mean 'stride'?"},
    {R"({"window": {"time": {"size": 1, "edge": "cut"}}})", "window.time.edge: 'cut' is none of "},
    // tensors
    {R"("tensors": [])", "tensors: expected an object"},
    {R"("tensors": {})", "tensors: name at least one tensor"},
    {R"("tensors": {"": {"variables": ["a"]}})", "tensors.: '' cannot be a file name"},
    {R"("tensors": {".": {"variables": ["a"]}})", "tensors..: '.' cannot be a file name"},
    {R"("tensors": {"a/b": {"variables": ["a"]}})", "tensors.a/b: 'a/b' cannot be a file name"},
    {R"("tensors": {"x": ["a"]})", "tensors.x: expected an object"},
    {R"("tensors": {"x": {}})", "tensors.x: the key 'variables' is missing"},
    {R"("tensors": {"x": {"variables": []}})", "tensors.x.variables: the list is empty"},
    {R"("tensors": {"x": {"variables": ["a", "a"], "stack": "c"}})",
     "tensors.x.variables: 'a' is given twice"},
    {R"("tensors": {"x": {"variables": ["a", "b"]}})",
     "tensors.x: several variables in one tensor need \"stack\""},
    {R"("tensors": {"x": {"variables": ["a"], "offset": {}}})",
     "tensors.x: unknown key 'offset', did you mean 'offsets'?"},
    {R"("tensors": {"x": {"variables": ["a"], "offsets": {"time": 1}}})",
     "tensors.x.offsets.time: expected a list"},
    {R"("tensors": {"x": {"variables": ["a"], "offsets": {"time": []}}})",
     "tensors.x.offsets.time: the list is empty"},
    {R"("tensors": {"x": {"variables": ["a"], "offsets": {"time": [0.5]}}})",
     "tensors.x.offsets.time[0]: expected a whole number"},
    {R"("tensors": {"x": {"variables": ["a"], "offsets": {"time": [0, 1e14]}}})",
     "tensors.x.offsets.time[1]: 100000000000000 is too large"},
    {R"("tensors": {"x": {"variables": ["a"], "stack": ""}})",
     "tensors.x.stack: the name is empty"},
    {R"("tensors": {"x": {"variables": ["a"], "stack": true}})",
     "tensors.x.stack: expected a string"},
    {R"("tensors": {"x": {"variables": ["a"], "dims": "time"}})",
     "tensors.x.dims: expected a list"},
    {R"("tensors": {"x": {"variables": ["a"], "dims": []}})", "tensors.x.dims: the list is empty"},
    {R"("tensors": {"x": {"variables": ["a"], "dims": ["t", "t"]}})",
     "tensors.x.dims: 't' is given twice"},
    // batch
    {R"("batch": 0)", "batch: 0 is too small"},
    {R"("batch": "8")", "batch: expected a whole number"},
    {R"("batch": {"size": 0})", "batch.size: 0 is too small"},
    {R"("batch": {"size": 16777217})", "batch.size: 16777217 is too large, the most is 16777216"},
    {R"("batch": 16777217)", "batch: 16777217 is too large"},
    {R"("batch": {"sice": 2})", "batch: unknown key 'sice', did you mean 'size'?"},
    {R"("batch": {"remainder": "kep"})",
     "batch.remainder: 'kep' is none of keep, drop, pad, did you mean 'keep'?"},
    {R"("batch": {"remainder": true})",
     "batch.remainder: 'true' is none of keep, drop, pad: write \"keep\", \"drop\" or \"pad\""},
    {R"("batch": {"remainder": 7})", "batch.remainder: expected a string, one of keep, drop, pad"},
    {R"("batch_size": 7)", "unknown key 'batch_size': write \"batch\": {\"size\": 32}"},
    {R"("drop_last": true)",
     "unknown key 'drop_last': write \"batch\": {\"size\": 32, \"remainder\": \"drop\"}"},
    {R"("num_workers": 4)", "unknown key 'num_workers': there are no workers"},
    {R"("transforms": [])", "unknown key 'transforms': a view has \"normalize\""},
    {R"("overlap": 4)", "unknown key 'overlap': write it per dimension: \"window\""},
    {R"("batch": {"drop_last": true})",
     "batch: unknown key 'drop_last': write \"remainder\": \"drop\""},
    {R"("order": {"shuffle": true})",
     "order.shuffle: 'true' is none of none, global, block: write \"global\""},
    {R"("order": {"shuffle": "random"})",
     "order.shuffle: 'random' is none of none, global, block: write \"global\""},
    {R"("dtype": "float")",
     "dtype: 'float' is none of float16, bfloat16, float32, float64: write \"float32\""},
    {R"("dtype": "<f8")",
     "dtype: '<f8' is none of float16, bfloat16, float32, float64: write \"float64\""},
    {R"("formats": ["numpy"])",
     "formats[0]: 'numpy' is none of npy, safetensors, npz, zarr, png: write \"npy\""},
    {R"("variables": "t2m")", "variables: expected a list; write [\"t2m\"]"},
    // order
    {R"("order": "global")", "order: expected an object"},
    {R"("order": {"shufle": "global"})", "order: unknown key 'shufle', did you mean 'shuffle'?"},
    {R"("order": {"shuffle": "globl"})",
     "order.shuffle: 'globl' is none of none, global, block, did you mean 'global'?"},
    {R"("order": {"seed": -1})", "order.seed: -1 is too small"},
    {R"("order": {"seed": 9223372036854775808})", "order.seed: the number is too large"},
    {R"("order": {"buffer": 0})", "order.buffer: 0 is too small"},
    {R"("order": {"buffer": 1048577})", "order.buffer: 1048577 is too large, the most is 1048576"},
    // epochs, dtype, missing, formats
    {R"("epochs": 0)", "epochs: 0 is too small"},
    {R"("epochs": 1000000001)", "epochs: 1000000001 is too large"},
    {R"("epochs": "many")", "epochs: expected a whole number"},
    {R"("dtype": "float33")", "dtype: 'float33' is none of "},
    {R"("dtype": "int32")", "dtype: 'int32' is none of "},
    {R"("dtype": 32)", "dtype: expected a string"},
    {R"("missing": "keep")", "missing: expected an object"},
    {R"("missing": {"nan": "drop"})", "missing.nan: 'drop' is none of keep, fill, skip"},
    {R"("missing": {"nam": "keep"})", "missing: unknown key 'nam', did you mean 'nan'?"},
    {R"("formats": "npy")", "formats: expected a list"},
    {R"("formats": [])", "formats: the list is empty"},
    {R"("formats": ["npy", "npy"])", "formats: 'npy' is given twice"},
    {R"("formats": ["npy", "npzz"])",
     "formats[1]: 'npzz' is none of npy, safetensors, npz, zarr, png, did you mean 'npz'?"},
    // xbatcher
    {R"("xbatcher": {"input_dims": {"t": 1}})",
     "window: a view has either \"xbatcher\" or \"window\""},
    {R"({"xbatcher": {"input_dims": {"t": 1}}, "batch": 2})",
     "batch: a view has either \"xbatcher\" or \"batch\""},
    {R"({"xbatcher": {"input_dims": {"t": 1}}, "tensors": {}})",
     "tensors: a view has either \"xbatcher\" or \"tensors\""},
    {R"({"xbatcher": {"input_dims": {"t": 1}}, "order": {"shuffle": "global"}})",
     "order: xbatcher's batches have their own order"},
    {R"({"xbatcher": []})", "xbatcher: expected an object"},
    {R"({"xbatcher": {}})", "xbatcher: the key 'input_dims' is missing"},
    {R"({"xbatcher": {"input_dims": {}}})", "xbatcher.input_dims: name at least one dimension"},
    {R"({"xbatcher": {"input_dims": {"t": 0}}})", "xbatcher.input_dims.t: 0 is too small"},
    {R"({"xbatcher": {"input_dims": {"t": 1}, "input_overlap": {"t": -1}}})",
     "xbatcher.input_overlap.t: -1 is too small"},
    {R"({"xbatcher": {"input_dims": {"t": 1}, "batch_dims": {"t": 0}}})",
     "xbatcher.batch_dims.t: 0 is too small"},
    {R"({"xbatcher": {"input_dims": {"t": 1}, "concat_input_dims": 1}})",
     "xbatcher.concat_input_dims: expected true or false"},
    {R"({"xbatcher": {"input_dims": {"t": 1}, "preload_batch": true}})",
     "xbatcher: unknown key 'preload_batch'"},
};

class ViewSpecRefuses : public testing::TestWithParam<Wrong> {};

TEST_P(ViewSpecRefuses, NamingKeyPathAndNearestName) {
  std::string json = GetParam().json;
  if (json.front() == '"') json = R"({"window": {"time": 1}, )" + json + "}";
  SCOPED_TRACE(json);
  const Error error = error_of([&] { parse(json); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_THAT(error.why(), StartsWith(GetParam().message));
  EXPECT_EQ(error.where(), "file.json");
}
INSTANTIATE_TEST_SUITE_P(Wrong, ViewSpecRefuses, testing::ValuesIn(kWrong));

TEST(ViewSpec, NamesThatAreTooLongForAFile) {
  const std::string longest(255, 'n');
  EXPECT_EQ(parse(R"({"window": {"t": 1}, "name": ")" + longest + "\"}").name, longest);
  EXPECT_THAT(
      error_of([&] { parse(R"({"window": {"t": 1}, "name": ")" + longest + "n\"}"); }).why(),
      StartsWith("name: "));
  EXPECT_THAT(error_of([&] { parse_view_spec(R"({"window": {"t": 1}})", "a/b", "f"); }).why(),
              HasSubstr("'a/b'"));
}

TEST(ViewSpec, DeepNestingIsRefused) {
  const std::string deep =
      "{\"window\": " + std::string(10000, '[') + std::string(10000, ']') + "}";
  EXPECT_THAT(error_of([&] { parse(deep); }).why(), HasSubstr("nested deeper than"));
}

TEST(ViewSpec, EveryCutOfAViewIsRefusedOrRead) {
  const std::string whole =
      R"({"name": "n", "window": {"lat": {"size": 4, "wrap": true}, "time": 1}, "order": {"shuffle": "block"}})";
  for (std::size_t n = 0; n < whole.size(); ++n)
    EXPECT_EQ(error_of([&] { parse(whole.substr(0, n)); }).code(), ErrorCode::invalid_argument)
        << n;
  for (std::size_t n = 0; n < whole.size(); ++n) {
    std::string damaged = whole;
    damaged[n] = static_cast<char>(damaged[n] ^ 0x15);
    try {
      parse(damaged);
    } catch (const Error& error) {
      EXPECT_EQ(error.where(), "file.json");
    }
  }
}

TEST(ViewSpec, NamesOfChoices) {
  EXPECT_EQ(remainder_name(ViewSpec::Remainder::drop), "drop");
  EXPECT_EQ(shuffle_name(Order::Shuffle::block), "block");
}

}  // namespace spec_test
}  // namespace batchfs
