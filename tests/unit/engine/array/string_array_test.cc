#include "engine/array/string_array.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/array/vlen_strings.h"
#include "tests/unit/engine/store/memory_store.h"

namespace batchfs {
namespace string_array_test {

using testing::HasSubstr;

/// numcodecs.VLenUTF8().encode(np.array(["", "a", "h\u00e9llo", "\U0001f600"], object)).
const std::string kFour("\4\0\0\0\0\0\0\0\1\0\0\0a\6\0\0\0h\xc3\xa9llo\4\0\0\0\xf0\x9f\x98\x80",
                        31);
/// numcodecs.Zlib(1).encode() of it.
const std::string kFourZlib = std::string(
    "\x78\x01\x63\x61\x80\x00\x46\x20\x95\xc8\x06\x24\x32\x0e\xaf\xcc\xc9\xc9\x67\x01\xb2\x3e\xcc"
    "\x9f\xd1\x00\x00\x34\x04\x06\x33",
    31);

struct Stored {
  std::shared_ptr<MemoryStore> store = std::make_shared<MemoryStore>();
  Json zarray = {{"zarr_format", 2}, {"shape", {4}},
                 {"chunks", {4}},    {"dtype", "|O"},
                 {"order", "C"},     {"compressor", {}},
                 {"fill_value", ""}, {"filters", {{{"id", "vlen-utf8"}}}}};

  StringArray array(std::uint64_t memory = UINT64_MAX) const {
    return StringArray(store,
                       std::make_shared<const ArrayMetadata>(
                           parse_array_v2("s", zarray, Json::object(), "s/.zarray")),
                       memory);
  }
  Strings read() const { return array().read(); }
  std::string refusal() const {
    try {
      read();
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing was thrown";
  }
};

Error refused(const StringArray& array) {
  try {
    array.read();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::internal, "nothing was thrown");
}

TEST(StringArray, ReadsWhatNumcodecsWrote) {
  Stored stored;
  stored.store->set("s/0", kFour);
  EXPECT_EQ(stored.read(), (Strings{"", "a", "h\u00e9llo", "\U0001f600"}));
  EXPECT_EQ(vlen({"", "a", "h\u00e9llo", "\U0001f600"}), kFour);
  stored.zarray["compressor"] = {{"id", "zlib"}};
  stored.store->set("s/0", kFourZlib);
  EXPECT_EQ(stored.read(), (Strings{"", "a", "h\u00e9llo", "\U0001f600"}));
}

TEST(StringArray, MoreThanTheMemoryIsRefused) {
  Stored stored;
  stored.zarray["shape"] = {64};
  stored.zarray["chunks"] = {1};
  const std::string text(20'000, 'x');
  for (int i = 0; i < 64; ++i) stored.store->set("s/" + std::to_string(i), vlen({text}));
  EXPECT_EQ(stored.array(2 << 20).read(), Strings(64, text)) << "they are read whole";
  const Error error = refused(stored.array(1 << 20));
  EXPECT_EQ(error.code(), ErrorCode::no_memory);
  EXPECT_STREQ(error.what(),
               "the 64 strings take more than 1.0 MB of memory; give more with --memory (s)");
}

TEST(StringArray, LongFillValuesAndChunksCount) {
  Stored stored;
  stored.zarray["shape"] = {64};
  stored.zarray["chunks"] = {1};
  stored.zarray["fill_value"] = std::string(20'000, 'x');
  EXPECT_EQ(stored.array(2 << 20).read().back().size(), 20'000U);
  EXPECT_EQ(refused(stored.array(1 << 20)).code(), ErrorCode::no_memory);
  stored.zarray["fill_value"] = "";
  stored.store->set("s/0", vlen({std::string(300'000, 'x')}));
  EXPECT_EQ(refused(stored.array(1 << 20)).code(), ErrorCode::no_memory)
      << "a quarter is a chunk's";
  stored.zarray["shape"] = {1};
  stored.zarray["chunks"] = {1 << 20};
  EXPECT_EQ(refused(stored.array(1 << 20)).code(), ErrorCode::no_memory) << "elements of a chunk";
}

TEST(StringArray, EdgesAndMissingChunks) {
  Stored stored;
  stored.zarray["shape"] = {3, 5};
  stored.zarray["chunks"] = {2, 3};
  stored.zarray["fill_value"] = "none";
  stored.store->set("s/0.1", vlen({"a3", "a4", "", "b3", "b4", ""}));
  stored.store->set("s/1.0", vlen({"c0", "c1", "c2", "", "", ""}));
  EXPECT_EQ(stored.read(), (Strings{"none", "none", "none", "a3", "a4", "none", "none", "none",
                                    "b3", "b4", "c0", "c1", "c2", "none", "none"}));
  for (const Json& fill : {Json(0), Json("0"), Json()}) {  // as writers have it
    stored.zarray["fill_value"] = fill;
    EXPECT_EQ(stored.read().front(), "");
  }
  stored.zarray["shape"] = {0, 5};
  EXPECT_EQ(stored.read(), Strings());
}

TEST(StringArray, BytesHaveABase64FillValue) {
  Stored stored;
  stored.zarray["filters"] = {{{"id", "vlen-bytes"}}};
  stored.zarray["shape"] = {6};
  stored.zarray["fill_value"] = "/2E=";  // base64.b64encode(b"\xffa")
  stored.store->set("s/0", vlen({"", "a", "\xfe", "b"}));
  EXPECT_EQ(stored.read(), (Strings{"", "a", "\xfe", "b",
                                    "\xff"
                                    "a",
                                    "\xff"
                                    "a"}));
  stored.zarray["fill_value"] = nullptr;
  EXPECT_EQ(stored.read().back(), "");
  stored.zarray["fill_value"] = "*";
  EXPECT_THAT(stored.refusal(), HasSubstr("not base64"));
}

TEST(StringArray, OfFormat3) {
  const Json document = {
      {"zarr_format", 3},
      {"node_type", "array"},
      {"shape", Json::array()},
      {"data_type", "string"},
      {"fill_value", ""},
      {"chunk_grid", {{"name", "regular"}, {"configuration", {{"chunk_shape", Json::array()}}}}},
      {"chunk_key_encoding", {{"name", "default"}}},
      {"codecs", {{{"name", "vlen-utf8"}}}}};
  const auto store = std::make_shared<MemoryStore>();
  store->set("s/c", vlen({"alone"}));
  const StringArray array(
      store, std::make_shared<const ArrayMetadata>(parse_array_v3("s", document, "s/zarr.json")));
  EXPECT_EQ(array.read(), Strings{"alone"});
}

TEST(StringArray, DamagedChunksAreRefusedByName) {
  Stored stored;
  for (std::size_t size = 0; size < kFour.size(); ++size) {
    stored.store->set("s/0", std::string_view(kFour).substr(0, size));
    EXPECT_THAT(stored.refusal(), HasSubstr("truncated (s/0)")) << size;
  }
  stored.store->set("s/0", vlen({"a", "b", "c"}));
  EXPECT_THAT(stored.refusal(), HasSubstr("3 strings, 4 were expected (s/0)"));
  stored.store->set("s/0", vlen({"a", "b", "c", "\xff"}));
  EXPECT_THAT(stored.refusal(), HasSubstr("not UTF-8 (s/0)"));
  std::string huge = kFour;
  huge.replace(4, 4, "\xff\xff\xff\xff");
  stored.store->set("s/0", huge);
  EXPECT_THAT(stored.refusal(), HasSubstr("truncated (s/0)"));
  stored.zarray["compressor"] = {{"id", "zlib"}};
  EXPECT_THAT(stored.refusal(), HasSubstr("zlib data are damaged"));
}

TEST(StringArray, AFailedReadIsNoFill) {
  Stored stored;
  stored.store->failing.insert("s/0");
  EXPECT_THAT(stored.refusal(), HasSubstr("on fire"));
}

TEST(StringArray, WhatIsNotReadIsRefusedByName) {
  Stored stored;
  stored.zarray["order"] = "F";
  stored.zarray["shape"] = stored.zarray["chunks"] = {2, 2};
  EXPECT_THAT(stored.refusal(), HasSubstr("transpose"));
  stored.zarray["order"] = "C";
  stored.zarray["filters"].push_back({{"id", "delta"}, {"dtype", "<i4"}});
  EXPECT_THAT(stored.refusal(), HasSubstr("delta"));
  stored.zarray["filters"] = {{{"id", "pickle"}}};
  EXPECT_THAT(stored.refusal(), HasSubstr("pickle"));
  stored.zarray["filters"] = {{{"id", "vlen-utf8"}}};
  stored.zarray["shape"] = stored.zarray["chunks"] = {1 << 20, 1 << 10};
  EXPECT_THAT(stored.refusal(), HasSubstr("2^22"));
  stored.zarray["chunks"] = {1, 1};
  EXPECT_THAT(stored.refusal(), HasSubstr("2^22"));
}

}  // namespace string_array_test
}  // namespace batchfs
