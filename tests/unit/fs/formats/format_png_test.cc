#include <cstring>

#include <gtest/gtest.h>
#include <zlib.h>

#include "fs/formats/formats.h"
#include "fs/formats/png.h"
#include "fs/formats/preview.h"
#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace format_png_test {

TEST(PngFormat, DrawsWhatWasAssembledInItsSecondFile) {
  MemoryData data;
  data.declare("a", "<f4", {"t", "y", "x"}, {4, 5, 7}, {1, 5, 7})
      .declare("b", "<f4", {"t", "y", "x"}, {4, 5, 7}, {1, 5, 7});
  const auto view =
      parse_view(data.dataset(), R"({"window": {"t": 1}, "batch": 3, "variables": ["a", "b"]})");
  EXPECT_EQ(png_format().name(), "png");
  EXPECT_FALSE(png_format().reusable());
  const MemoryFiles memory(false);
  for (const std::int64_t number : {0, 1}) {  // the second has one sample
    const BatchLayout layout = png_format().layout(*view, number);
    const Preview preview(*view, number);
    ASSERT_EQ(layout.files.size(), 2u);
    ASSERT_EQ(layout.tensors.size(), 2u);
    EXPECT_EQ(layout.files[0].size, png_size(static_cast<std::uint32_t>(preview.width()),
                                             static_cast<std::uint32_t>(preview.height())));
    std::vector<MemoryFile> files;
    for (const auto& file : layout.files) files.push_back(memory.create("test", file.size));
    std::vector<std::vector<float>> values;
    for (std::size_t t = 0; t < 2; ++t) {
      EXPECT_EQ(layout.tensors[t].file, 1u);
      values.emplace_back(static_cast<std::size_t>(element_count(view->shapes(number)[t])));
      for (std::size_t i = 0; i < values[t].size(); ++i)
        values[t][i] = static_cast<float>(t * 1000 + i * i);
      std::memcpy(files[1].data() + layout.tensors[t].offset, values[t].data(),
                  values[t].size() * 4);
    }
    layout.finish(files, 0);
    const Canvas canvas =
        preview.draw({std::as_bytes(std::span(values[0])), std::as_bytes(std::span(values[1]))},
                     sample_captions(*view, 0, number, 100));
    std::vector<std::byte> expected(layout.files[0].size);
    write_png(expected, static_cast<std::uint32_t>(preview.width()),
              static_cast<std::uint32_t>(preview.height()), preview_palette(), canvas.pixels());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), files[0].span().begin(),
                           files[0].span().end()));
  }
}

}  // namespace format_png_test
}  // namespace batchfs
