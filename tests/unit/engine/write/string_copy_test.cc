#include "engine/write/string_copy.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/array/vlen_strings.h"
#include "tests/unit/engine/store/memory_store.h"
#include "tests/unit/engine/store/temporary_directory.h"

namespace batchfs {
namespace string_copy_test {

TEST(CopyStrings, ChunksKeepTheirStringsAndTheirShape) {
  const auto store = std::make_shared<MemoryStore>();
  store->set("s/0", vlen({"a", "länger", ""}));
  store->set("s/2", vlen({"letzter", "x", "x"}));  // 1 is missing; the last has one string
  const auto source =
      std::make_shared<const ArrayMetadata>(parse_array_v2("s",
                                                           {{"zarr_format", 2},
                                                            {"shape", {7}},
                                                            {"chunks", {3}},
                                                            {"dtype", "|O"},
                                                            {"compressor", nullptr},
                                                            {"fill_value", "x"},
                                                            {"order", "C"},
                                                            {"filters", {{{"id", "vlen-utf8"}}}}},
                                                           Json::object(), "s/.zarray"));
  const TemporaryDirectory folder;
  const auto output = open_local_output(folder / "o");
  const OutputArray array =
      make_output_array(*source, "s", 3, {{3}, {3}}, parse_compression("none"));
  const CopiedStrings copied = copy_strings(store, source, array, *output);
  EXPECT_EQ(copied.objects, 2u);
  const auto object = [&](const std::string& key) {
    const auto bytes = output->get(key);
    return bytes ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()) : "";
  };
  EXPECT_EQ(object("s/c/0"), vlen({"a", "länger", ""}));
  EXPECT_FALSE(output->get("s/c/1"));
  EXPECT_EQ(object("s/c/2"), vlen({"letzter", "x", "x"}));
  EXPECT_EQ(copied.stored_bytes, object("s/c/0").size() + object("s/c/2").size());
}

}  // namespace string_copy_test
}  // namespace batchfs
