#include "gpu/reader/schema.h"

#include <gtest/gtest.h>

#include "engine/base/error.h"

namespace batchfs::reader {
namespace schema_test {

constexpr const char* kSchema =
    R"({"view": "v", "samples": 40, "batch_size": 3, "batches": 14, "epochs": 2,
  "tensors": [{"name": "x", "dtype": "float32", "shape": [3, 2], "dims": ["sample", "a"]}], "formats": ["npy"]})";

TEST(Schema, IsRead) {
  const Schema schema = parse_schema(kSchema, R"({"batch": {"size": 3, "remainder": "pad"}})");
  EXPECT_EQ(schema.view, "v");
  EXPECT_EQ(schema.batches, 14);
  EXPECT_EQ(schema.epoch_samples, 40);
  EXPECT_EQ(schema.tensors.at(0).dims, (std::vector<std::string>{"sample", "a"}));
  EXPECT_EQ(schema.remainder, handoff::Remainder::pad);
  EXPECT_EQ(parse_schema(kSchema, R"({"xbatcher": {}})").remainder, handoff::Remainder::keep);
}

TEST(Schema, WhatIsNoneIsRefused) {
  for (const char* text : {"", "[]", "{}", "nonsense", R"({"view": 3})",
                           R"({"view": "v", "samples": -1, "batch_size": 3,
       "batches": 14, "epochs": 2, "tensors": [], "formats": []})"})
    EXPECT_THROW(parse_schema(text, "{}"), Error) << text;
  EXPECT_THROW(parse_schema(kSchema, "nonsense"), Error);
}

TEST(Schema, RanksShareWhatIsLeft) {
  Schema schema;
  schema.batches = 14;
  for (const auto rule :
       {handoff::Remainder::keep, handoff::Remainder::drop, handoff::Remainder::pad}) {
    schema.remainder = rule;
    for (std::int64_t done = 0; done <= 14; ++done)
      for (std::int64_t world = 1; world < 20; ++world) {
        std::int64_t sum = 0;
        for (std::int64_t rank = 0; rank < world; ++rank) {
          const std::int64_t count = rank_batches(schema, done, rank, world);
          // Counted one by one.
          std::int64_t expected = 0;
          for (std::int64_t b = done + rank; b < 14; b += world) ++expected;
          if (rule == handoff::Remainder::drop) expected = (14 - done) / world;
          if (rule == handoff::Remainder::pad) expected = (14 - done + world - 1) / world;
          EXPECT_EQ(count, expected) << done << " " << rank << " " << world;
          sum += count;
        }
        if (rule == handoff::Remainder::keep) {
          EXPECT_EQ(sum, 14 - done);
        }
      }
  }
}

}  // namespace schema_test
}  // namespace batchfs::reader
