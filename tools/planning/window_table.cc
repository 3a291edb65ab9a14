#include "tools/planning/window_table.h"

#include <algorithm>
#include <vector>

#include "engine/view/axes.h"
#include "fs/formats/npy.h"

namespace batchfs {

void write_window_table(const View& view, std::int64_t epoch,
                        const std::function<void(std::span<const std::byte>)>& write) {
  const std::size_t dims = view.axes().windows.size(), columns = 2 + dims;
  // All batches have one size, but the last of remainder "keep", which may be shorter.
  const auto samples_of = [&](std::int64_t batch) {
    return static_cast<std::int64_t>(view.batch_samples(epoch, batch).size());
  };
  const std::int64_t last = view.batches() - 1;
  const std::int64_t rows = last < 0 ? 0 : samples_of(0) * last + samples_of(last);
  const std::string header =
      npy_header(make_type(Kind::signed_int, 8), {rows, static_cast<std::int64_t>(columns)}, 64);
  write(std::as_bytes(std::span(header)));
  std::vector<std::int64_t> table;
  for (std::int64_t batch = 0; batch < view.batches(); ++batch) {
    const std::vector<std::int64_t> windows = view.batch_windows(epoch, batch);
    const std::size_t samples = windows.size() / (1 + dims);
    table.clear();
    for (std::size_t i = 0; i < samples; ++i) {
      table.push_back(batch);
      table.push_back(windows[i]);
      const auto starts = windows.begin() + static_cast<std::ptrdiff_t>(samples + i * dims);
      table.insert(table.end(), starts, starts + static_cast<std::ptrdiff_t>(dims));
    }
    write(std::as_bytes(std::span(table)));
  }
}

}  // namespace batchfs
