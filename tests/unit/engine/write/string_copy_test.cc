#include "engine/write/string_copy.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/array/vlen_strings.h"
#include "tests/unit/engine/store/memory_store.h"
#include "tests/unit/engine/store/temporary_directory.h"

namespace batchfs {
namespace string_copy_test {

std::shared_ptr<const ArrayMetadata> strings_of(const Json& shape, const Json& chunks) {
  const Json document = {{"zarr_format", 2},      {"shape", shape},
                         {"chunks", chunks},      {"dtype", "|O"},
                         {"compressor", nullptr}, {"fill_value", "x"},
                         {"order", "C"},          {"filters", {{{"id", "vlen-utf8"}}}}};
  return std::make_shared<const ArrayMetadata>(
      parse_array_v2("s", document, Json::object(), "s/.zarray"));
}

TEST(StringCopy, ChunksKeepTheirStringsAndTheirShape) {
  const auto store = std::make_shared<MemoryStore>();
  store->set("s/0", vlen({"a", "länger", ""}));
  store->set("s/2", vlen({"letzter", "x", "x"}));  // 1 is missing; the last has one string
  const auto source = strings_of({7}, {3});
  const TemporaryDirectory folder;
  const auto output = open_local_output(folder / "o");
  const OutputArray array =
      make_output_array(*source, "s", 3, {{3}, {3}}, parse_compression("none"));
  StringCopy copy(store, source, array, *output, 1 << 20, 4);
  for (std::size_t i = 0; i < copy.items(); ++i) copy.copy(i);
  EXPECT_EQ(copy.objects_put(), 2u);
  const auto object = [&](const std::string& key) {
    const auto bytes = output->get(key);
    return bytes ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()) : "";
  };
  EXPECT_EQ(object("s/c/0"), vlen({"a", "länger", ""}));
  EXPECT_FALSE(output->get("s/c/1"));
  EXPECT_EQ(object("s/c/2"), vlen({"letzter", "x", "x"}));
  EXPECT_EQ(copy.stored_bytes(), object("s/c/0").size() + object("s/c/2").size());
}

/// One chunk of `count` strings of 1000 bytes.
std::shared_ptr<MemoryStore> long_strings(std::size_t count) {
  const auto store = std::make_shared<MemoryStore>();
  store->set("s/0", vlen(std::vector<std::string>(count, std::string(1000, 'a'))));
  return store;
}

TEST(StringCopy, AChunkThatTakesMoreThanAShareTakesAllOfTheMemory) {
  const auto store = long_strings(2000);
  const auto source = strings_of({1000}, {2000});
  const TemporaryDirectory folder;
  const auto output = open_local_output(folder / "o");
  const OutputArray array =
      make_output_array(*source, "s", 3, {{1000}, {1000}}, parse_compression("none"));
  StringCopy enough(store, source, array, *output, 16 << 20, 8);
  enough.copy(0);
  EXPECT_EQ(enough.objects_put(), 1u);
  StringCopy little(store, source, array, *output, 4 << 20, 8);
  try {
    little.copy(0);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::no_memory);
    EXPECT_NE(error.why().find("the 2000 strings of a chunk take more than 2.0 MB of memory; give "
                               "more with --memory"),
              std::string::npos)
        << error.why();
  }
}

}  // namespace string_copy_test
}  // namespace batchfs
