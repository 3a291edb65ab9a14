// The rows for the assembly kernel, spelled out element by element.

#include "gpu/program/assembly_plan.h"

#include <cstring>
#include <random>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs::gpu {
namespace assembly_plan_test {

/// Where an element comes from and goes to, and its entry of the normalisation's numbers.
using Element = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;

std::vector<Element> elements_of(const Gather& row) {
  std::vector<Element> all;
  for (std::uint32_t e = 0; e < row.elements; ++e) {
    Element element{row.source, row.target, row.entry};
    std::uint32_t rest = e;
    for (std::uint8_t d = 0; d < row.dims; ++d) {
      const std::int64_t at = rest % row.dim[d].count;
      rest /= row.dim[d].count;
      std::get<0>(element) += static_cast<std::uint64_t>(at * row.dim[d].source_stride);
      std::get<1>(element) += static_cast<std::uint64_t>(at * row.dim[d].target_stride);
      std::get<2>(element) += static_cast<std::uint64_t>(at * row.dim[d].entry_stride);
    }
    all.push_back(element);
  }
  return all;
}

std::vector<Element> elements_of(const GatherPlan& plan) {
  std::vector<Element> all;
  for (const Gather& row : plan.gathers()) {
    const auto more = elements_of(row);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

/// The same, by counting through the box in C order.
std::vector<Element> expected(const Dims& shape, const GatherPlan::Place& source,
                              const GatherPlan::Place& target, std::uint64_t entry,
                              const Dims& entry_strides) {
  std::vector<Element> all;
  const auto walk = [&](auto&& self, std::size_t d, Element at) -> void {
    if (d == shape.size()) return all.push_back(at);
    for (std::int64_t i = 0; i < shape[d]; ++i) {
      const auto step = [i, d](const Dims& strides) {
        return strides.empty() ? 0 : static_cast<std::uint64_t>(i * strides[d]);
      };
      self(self, d + 1,
           {std::get<0>(at) + step(source.strides), std::get<1>(at) + step(target.strides),
            std::get<2>(at) + step(entry_strides)});
    }
  };
  walk(walk, 0, {source.offset, target.offset, entry});
  return all;
}

/// Slices follow each other without a gap, and no row has more dimensions than the kernel knows.
void expect_sound(const GatherPlan& plan) {
  std::uint32_t slices = 0;
  for (const Gather& row : plan.gathers()) {
    EXPECT_EQ(row.first_slice, slices);
    EXPECT_GE(row.dims, 1);
    EXPECT_LE(row.dims, kGatherDims);
    std::uint64_t elements = 1;
    for (std::uint8_t d = 0; d < row.dims; ++d) elements *= row.dim[d].count;
    EXPECT_EQ(elements, row.elements);
    slices += (row.elements + kGatherSlice - 1) / kGatherSlice;
  }
  EXPECT_EQ(plan.slices(), slices);
}

TEST(GatherPlan, EveryElementGoesToItsPlace) {
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    const std::size_t rank = random() % 9;
    Dims shape, entry_strides;
    for (std::size_t d = 0; d < rank; ++d)
      shape.push_back(1 + static_cast<std::int64_t>(random() % 3));
    Dims wide = shape;  // the chunk that the box is cut from
    for (std::int64_t& n : wide) n += static_cast<std::int64_t>(random() % 2);
    GatherPlan::Place source{random() % 1000, c_strides(wide, 4)},
        target{random() % 1000, c_strides(shape, 2)};
    std::shuffle(target.strides.begin(), target.strides.end(), random);
    if (random() % 2)
      for (std::size_t d = 0; d < rank; ++d)
        entry_strides.push_back(static_cast<std::int64_t>(random() % 3));
    GatherPlan plan;
    plan.add(7, shape, source, 2, target, 5, entry_strides);
    expect_sound(plan);
    EXPECT_EQ(elements_of(plan), expected(shape, source, target, 5, entry_strides)) << round;
    for (const Gather& row : plan.gathers()) {
      EXPECT_EQ(row.conversion, 7u);
      EXPECT_EQ(row.swap, 2);
      EXPECT_FALSE(row.from_constants);
    }
  }
}

TEST(GatherPlan, WhatIsContiguousOnBothSidesIsOneDimension) {
  const Dims shape{5, 1, 6, 7};
  GatherPlan plan;
  plan.add(0, shape, {0, c_strides(shape, 4)}, 1, {0, c_strides(shape, 4)}, 0, {});
  ASSERT_EQ(plan.gathers().size(), 1u);
  EXPECT_EQ(plan.gathers()[0].dims, 1);
  EXPECT_EQ(plan.gathers()[0].elements, 210u);
  plan.clear();
  EXPECT_EQ(plan.slices(), 0u);
  plan.add(0, shape, {0, c_strides({5, 1, 6, 8}, 4)}, 1, {0, c_strides(shape, 4)}, 0, {});
  ASSERT_EQ(plan.gathers().size(), 1u);
  EXPECT_EQ(plan.gathers()[0].dims, 2) << "rows of a wider chunk";
  plan.clear();
  plan.add(0, shape, {0, c_strides(shape, 4)}, 1, {0, c_strides(shape, 4)}, 0, {1, 0, 0, 0});
  EXPECT_EQ(plan.gathers()[0].dims, 2) << "numbers of normalisation by the first dimension";
}

TEST(GatherPlan, EmptyBoxesAndSingleElements) {
  GatherPlan plan;
  plan.add(0, {4, 0, 3}, {0, {12, 12, 4}}, 1, {0, {12, 12, 4}}, 0, {});
  EXPECT_TRUE(plan.gathers().empty());
  plan.add(0, {}, {8, {}}, 1, {16, {}}, 0, {});
  plan.add(0, {1, 1}, {9, {5, 5}}, 1, {17, {5, 5}}, 0, {});
  expect_sound(plan);
  EXPECT_EQ(elements_of(plan), (std::vector<Element>{{8, 16, 0}, {9, 17, 0}}));
}

TEST(GatherPlan, FillValuesAreOneElementForAll) {
  GatherPlan plan;
  plan.add(0, {2}, {0, {4}}, 1, {0, {4}}, 0, {});
  plan.add_fill(3, {2, 3}, 48, {100, {64, 4}}, 9, {1, 0});
  ASSERT_EQ(plan.gathers().size(), 2u);
  EXPECT_FALSE(plan.gathers()[0].from_constants);
  EXPECT_TRUE(plan.gathers()[1].from_constants);
  EXPECT_EQ(plan.gathers()[1].swap, 1) << "fill values are in native byte order";
  EXPECT_EQ(elements_of(plan.gathers()[1]), expected({2, 3}, {48, {}}, {100, {64, 4}}, 9, {1, 0}));
  expect_sound(plan);
}

TEST(GatherPlan, HugeBoxesAreCutIntoRows) {
  const Dims shape{1 << 12, 1 << 10, 1 << 10};
  GatherPlan plan;
  plan.add(0, shape, {0, c_strides(shape, 8)}, 1, {0, c_strides(shape, 8)}, 0, {});
  expect_sound(plan);
  std::uint64_t elements = 0;
  for (const Gather& row : plan.gathers()) {
    EXPECT_EQ(row.source, elements * 8);
    EXPECT_EQ(row.target, elements * 8);
    EXPECT_LE(row.elements, 1u << 30);
    elements += row.elements;
  }
  EXPECT_EQ(elements, std::uint64_t{1} << 32);
  GatherPlan too_much;
  EXPECT_THROW(too_much.add(0, {(std::int64_t{1} << 30) + 1}, {0, {1}}, 1, {0, {1}}, 0, {}), Error);
  EXPECT_THROW(too_much.add(0, {INT64_MAX}, {0, {1}}, 1, {0, {1}}, 0, {}), Error);
  EXPECT_TRUE(too_much.gathers().empty());
}

std::shared_ptr<const View> parse(const MemoryData& data, const std::string& json) {
  return View::parse(data.dataset(), json, "v", "test");
}

double number_at(const AssemblyTables& tables, std::uint64_t at) {
  double number;
  EXPECT_EQ(at % sizeof number, 0u) << "the kernel reads it as it lies";
  EXPECT_LE(at + sizeof number, tables.constants().size());
  std::memcpy(&number, tables.constants().data() + at, sizeof number);
  return number;
}

TEST(AssemblyTables, HoldEachVariablesConversionAndConstants) {
  MemoryData data;
  data.declare("a", "<i2", {"time", "level"}, {6, 3}, {1, 3},
               {{"scale_factor", 0.5}, {"add_offset", 273.0}}, -7);
  data.declare("b", "<f4", {"time", "level"}, {6, 3}, {1, 3}, Json::object(), 2.5);
  const auto view = parse(data, R"({"window": {"time": 1}, "batch": 2, "dtype": "float32",
      "normalize": {"method": "zscore", "statistics": {"a": {"dims": ["level"], "mean": [1, 2, 3], "std": [4, 5, 6]}},
                    "variables": ["a"]}})");
  const AssemblyTables tables(*view);
  ASSERT_EQ(view->variables().size(), 2u);
  const std::uint32_t a = view->variables()[0]->name == "a" ? 0 : 1, b = 1 - a;
  const Conversion& of_a = tables.conversions()[tables.conversion(a, a)];
  EXPECT_FALSE(of_a.copies);
  EXPECT_EQ(of_a.item, 2);
  EXPECT_EQ(of_a.result_item, 4);
  EXPECT_EQ(of_a.stored, Number::i16);
  EXPECT_EQ(of_a.result, Number::f32);
  EXPECT_TRUE(of_a.has_scale && of_a.has_offset && of_a.normalises);
  EXPECT_EQ(of_a.scale, 0.5);
  EXPECT_EQ(of_a.offset, 273.0);
  ASSERT_EQ(of_a.masks, 1u);
  EXPECT_EQ(number_at(tables, of_a.masked), -7.0);
  ASSERT_EQ(of_a.entries, 3u);
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(number_at(tables, of_a.subtract + 8 * i), 1.0 + static_cast<double>(i));
    EXPECT_EQ(number_at(tables, of_a.divide + 8 * i), 4.0 + static_cast<double>(i));
  }
  EXPECT_FALSE(tables.conversions()[tables.conversion(b, b)].normalises);
  std::int16_t fill_a;
  std::memcpy(&fill_a, tables.constants().data() + tables.fill_value(a), sizeof fill_a);
  EXPECT_EQ(fill_a, -7);
  float fill_b;
  std::memcpy(&fill_b, tables.constants().data() + tables.fill_value(b), sizeof fill_b);
  EXPECT_EQ(fill_b, 2.5f);
  EXPECT_THROW(tables.conversion(a, b), std::out_of_range);
}

TEST(AssemblyTables, NameTheVariableThatTheGpuDoesNotConvert) {
  MemoryData data;
  data.declare("fine", "<f4", {"time", "x"}, {6, 3}, {1, 3});
  data.declare("flags", "|i1", {"time", "x"}, {6, 3}, {1, 3}, {{"dtype", "bool"}});
  try {
    const AssemblyTables tables(*parse(data, R"({"window": {"time": 1}, "batch": 2})"));
    FAIL() << "numbers to bool";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_supported);
    EXPECT_EQ(error.where(), "flags");
  }
}

TEST(AddUse, TakesPartsFromTheirPlaceInTheChunk) {
  MemoryData data;
  data.declare("a", "<f4", {"time", "x"}, {8, 6}, {4, 6});
  const auto view = parse(data, R"({"window": {"time": 1, "x": 2}, "batch": 5})");
  const AssemblyTables tables(*view);
  const BatchPlan batch = view->plan(0, 2);  // windows 10 to 14: steps 3 and 4, of both chunks
  ASSERT_EQ(batch.chunks.size(), 2u);
  const std::uint64_t begins[] = {4096};
  ChunkForm form;
  form.strides = {24, 4};
  // Only the needed run is present: the chunk would begin before the area.
  const DecodedPlace first{static_cast<std::uint64_t>(-72), &form};
  GatherPlan plan;
  add_use(plan, *view, tables, batch, batch.chunks[0], &first, begins);
  const std::size_t rows = plan.gathers().size();
  add_use(plan, *view, tables, batch, batch.chunks[1], nullptr, begins);
  expect_sound(plan);
  std::vector<std::uint64_t> sources, targets;
  for (std::size_t i = 0; i < plan.gathers().size(); ++i) {
    EXPECT_EQ(plan.gathers()[i].from_constants, i >= rows);
    for (const Element& element : elements_of(plan.gathers()[i])) {
      if (i < rows)
        sources.push_back(std::get<0>(element));
      else
        EXPECT_EQ(std::get<0>(element), tables.fill_value(0));
      targets.push_back(std::get<1>(element));
    }
  }
  // Step 3 of chunk 0 is its last row, x from 2 on: windows 10 and 11 take 2 values each.
  EXPECT_THAT(sources, testing::UnorderedElementsAre(8u, 12u, 16u, 20u));
  std::vector<std::uint64_t> all;
  for (std::uint64_t i = 0; i < 10; ++i) all.push_back(4096 + 4 * i);
  EXPECT_THAT(targets, testing::UnorderedElementsAreArray(all));
}

TEST(AssemblyTables, LeaveCombinedAndCoarsenedVariablesToTheHost) {
  MemoryData data;
  data.declare("a", "<f4", {"time", "lat"}, {2, 4}, {1, 4});
  const auto refusal = [&](const char* tensor) {
    const auto view =
        View::parse(data.dataset(),
                    fmt::format(R"({{"window": {{"time": 1}}, "tensors": {{"x": {}}}}})", tensor),
                    "v", "v.json");
    const Error error = error_of([&] { AssemblyTables tables(*view); });
    EXPECT_EQ(error.code(), ErrorCode::not_supported);
    return std::string(error.what());
  };
  EXPECT_EQ(refusal(R"({"variables": [{"make": "sum", "of": ["a", "a"]}]})"),
            "the GPU does not combine variables (sum)");
  EXPECT_EQ(refusal(R"({"variables": ["a"], "coarsen": {"lat": 2}})"),
            "the GPU does not coarsen tensors (coarsen)");
}

}  // namespace assembly_plan_test
}  // namespace batchfs::gpu
