#include "engine/write/output_metadata.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/store/temporary_directory.h"

namespace batchfs {
namespace output_metadata_test {

/// Notes the keys in the order in which they are put.
class Noted final : public OutputStore {
 public:
  explicit Noted(std::shared_ptr<OutputStore> output) : output_(std::move(output)) {}
  std::string url() const override { return output_->url(); }
  using OutputStore::put;
  void put(const std::string& key, std::span<const std::span<const std::byte>> parts) override {
    keys.push_back(key);
    output_->put(key, parts);
  }
  std::optional<Buffer> get(const std::string& key) override { return output_->get(key); }
  void read_part(const std::string& key, std::uint64_t offset, std::span<std::byte> out) override {
    output_->read_part(key, offset, out);
  }
  bool is_empty() override { return output_->is_empty(); }
  void sync() override { keys.push_back("(sync)"); }
  void discard_working_files() override { output_->discard_working_files(); }
  std::unique_ptr<Lock> lock(const std::string& name) override { return output_->lock(name); }
  bool is_local() const override { return true; }

  nlohmann::json document(const std::string& key) {
    const auto bytes = get(key);
    if (!bytes) return nullptr;
    return nlohmann::json::parse(reinterpret_cast<const char*>(bytes->data()),
                                 reinterpret_cast<const char*>(bytes->data()) + bytes->size());
  }

  std::vector<std::string> keys;

 private:
  const std::shared_ptr<OutputStore> output_;
};

class OutputMetadataTest : public testing::Test {
 protected:
  OutputMetadataTest() {
    source_.groups["g"] = {"g", {{"at", "g"}}};
    source_.groups["g/b"] = {"g/b", {{"at", "b"}}};
  }
  OutputArray array(const std::string& path, int format) const {
    const ArrayMetadata source = parse_array_v2(path,
                                                {{"zarr_format", 2},
                                                 {"shape", {4}},
                                                 {"chunks", {4}},
                                                 {"dtype", "<f4"},
                                                 {"compressor", nullptr},
                                                 {"fill_value", nullptr},
                                                 {"order", "C"},
                                                 {"filters", nullptr}},
                                                {{"_ARRAY_DIMENSIONS", {"x"}}}, path + "/.zarray");
    return make_output_array(source, path, format, {{2}, {2}}, parse_compression("none"));
  }

  const TemporaryDirectory folder_;
  Noted output_{open_local_output(folder_ / "o")};
  Hierarchy source_;
};

TEST_F(OutputMetadataTest, TheDocumentThatMakesAStoreIsTheLast) {
  for (const int format : {2, 3}) {
    output_.keys.clear();
    const OutputArray one = array("a", format), other = array("b/v", format);
    put_metadata(output_, format, {&one, &other}, source_, "g");
    const std::vector<std::string>& keys = output_.keys;
    const auto last = std::find(keys.begin(), keys.end(), last_key(format, false));
    ASSERT_NE(last, keys.end());
    EXPECT_EQ(last - keys.begin(), static_cast<std::ptrdiff_t>(keys.size()) - 2);
    EXPECT_EQ(keys.front(), "(sync)");  // chunks come before documents
    EXPECT_EQ(*std::prev(last), "(sync)");
    EXPECT_EQ(keys.back(), "(sync)");
  }
}

TEST_F(OutputMetadataTest, Format3IsConsolidatedInItsRoot) {
  const OutputArray one = array("a", 3), other = array("b/v", 3);
  put_metadata(output_, 3, {&one, &other}, source_, "g");
  const auto root = output_.document("zarr.json");
  EXPECT_EQ(root["attributes"], nlohmann::json::parse(R"({"at": "g"})"));
  EXPECT_EQ(root["node_type"], "group");
  const auto& nodes = root["consolidated_metadata"]["metadata"];
  EXPECT_EQ(nodes.size(), 3u);
  for (const std::string path : {"a", "b", "b/v"})
    EXPECT_EQ(nodes[path], output_.document(path + "/zarr.json")) << path;
  EXPECT_EQ(nodes["b"]["attributes"]["at"], "b");
  EXPECT_EQ(nodes["a"]["chunk_grid"]["configuration"]["chunk_shape"], nlohmann::json({2}));
}

TEST_F(OutputMetadataTest, Format2IsConsolidatedBesideItsDocuments) {
  const OutputArray one = array("a", 2), other = array("b/v", 2);
  put_metadata(output_, 2, {&one, &other}, source_, "g");
  const auto all = output_.document(".zmetadata");
  EXPECT_EQ(all["zarr_consolidated_format"], 1);
  const auto& nodes = all["metadata"];
  EXPECT_EQ(nodes.size(), 8u);
  for (const auto& [key, document] : nodes.items())
    EXPECT_EQ(document, output_.document(key)) << key;
  EXPECT_EQ(nodes[".zattrs"]["at"], "g");
  EXPECT_EQ(nodes["a/.zattrs"]["_ARRAY_DIMENSIONS"], nlohmann::json({"x"}));
}

TEST_F(OutputMetadataTest, AnArrayAloneIsTheRoot) {
  const OutputArray two = array("", 2), three = array("", 3);
  put_metadata(output_, 2, {&two}, source_, "");
  EXPECT_EQ(output_.document(".zarray")["chunks"], nlohmann::json({2}));
  EXPECT_EQ(output_.document(".zattrs")["_ARRAY_DIMENSIONS"], nlohmann::json({"x"}));
  EXPECT_EQ(last_key(2, true), ".zarray");
  put_metadata(output_, 3, {&three}, source_, "");
  EXPECT_EQ(output_.document("zarr.json")["node_type"], "array");
}

}  // namespace output_metadata_test
}  // namespace batchfs
