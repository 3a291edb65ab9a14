#include "fs/export/export_run.h"

#include <algorithm>
#include <mutex>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "engine/scan/source_versions.h"
#include "engine/store/fingerprint.h"
#include "engine/view/describe/resolved.h"
#include "engine/write/recorded_run.h"
#include "engine/write/run_identity.h"

namespace batchfs {

namespace {

std::uint64_t batch_bytes(const View& view, std::int64_t batch) {
  std::uint64_t bytes = 0;
  const std::vector<Dims> shapes = view.shapes(batch);
  for (std::size_t t = 0; t < shapes.size(); ++t)
    bytes += static_cast<std::uint64_t>(element_count(shapes[t])) * view.tensors()[t].type.itemsize;
  return bytes;
}

Json export_identity(const ExportOptions& options, const Json& source) {
  return {{"command", "export"},
          {"version", 2},
          {"store", options.source},
          {"source", source},
          {"view", fingerprint(resolved_view(*options.range.view).dump())},
          {"form", options.form},
          {"codec", compression_text(options.compression)},
          {"epoch", options.range.epoch},
          {"batches", Json::array({options.range.first, options.range.end})},
          {"batches_per_object", options.range.batches_per_unit},
          {"tasks", options.tasks}};
}

class ExportRun {
 public:
  ExportRun(Engine& engine, const ExportOptions& options, std::shared_ptr<OutputStore> output)
      : engine_(engine),
        options_(options),
        output_(std::move(output)),
        form_(make_export_form(options.form, options.range, options.compression, *output_)),
        source_(source_arrays(*options.range.view), {options.threads, false, options.cancelled}),
        record_(*output_, export_identity(options, source_.digests()), options.task, options.tasks),
        run_(record_, {options.progress, options.cancelled, {}}) {}

  ExportResult run() {
    record_.open();
    if (output_->get(form_->last_key())) return finish();
    const std::int64_t units = options_.range.units();
    const auto border = [&](int task) {
      return static_cast<std::int64_t>(static_cast<__int128>(units) * task / options_.tasks);
    };
    std::vector<std::int64_t> left;
    for (std::int64_t unit = border(options_.task); unit < border(options_.task + 1); ++unit)
      if (!record_.is_done(unit)) left.push_back(unit);
    const std::int64_t all = border(options_.task + 1) - border(options_.task);
    result_.units_skipped = all - static_cast<std::int64_t>(left.size());
    run_.expect(result_.units_skipped, all);
    if (!run_units(left)) {
      result_.state = ExportResult::State::interrupted;
      return result_;
    }
    source_.confirm();
    record_.complete(0);
    if (!record_.all_complete(0) || !record_.may_finish()) {
      result_.state = ExportResult::State::task_done;
      return result_;
    }
    output_->sync();
    form_->finish();
    output_->sync();
    return finish();
  }

 private:
  ExportResult finish() {
    output_->discard_working_files();
    result_.state = ExportResult::State::finished;
    return result_;
  }

  bool run_units(const std::vector<std::int64_t>& left) {
    const int cores = options_.threads > 0
                          ? options_.threads
                          : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    const RegionLimits limits{cores, output_->is_local() ? cores : std::max(cores, 8), true,
                              options_.memory};
    std::size_t next = 0;
    return run_.run(limits, [&]() -> std::shared_ptr<RegionWork> {
      return next < left.size() ? work_of(left[next++]) : nullptr;
    });
  }

  std::shared_ptr<RegionWork> work_of(std::int64_t unit) {
    const ExportRange& range = options_.range;
    auto work = std::make_shared<RegionWork>();
    // The batches or a copy, and their encoded form.
    work->memory = 2 * batch_bytes(*range.view, range.first) *
                   static_cast<std::uint64_t>(range.unit_end(unit) - range.unit_begin(unit));
    RegionWork* const made = work.get();
    work->begin = [this, made, unit, &range] {
      const std::shared_ptr<ExportUnit> writer = form_->begin(unit);
      for (std::int64_t batch = range.unit_begin(unit); batch < range.unit_end(unit); ++batch) {
        run_.keep_up();
        writer->add(batch,
                    engine_.open(BatchRequest{range.view, &form_->format(), range.epoch, batch}));
      }
      made->write_count = writer->items();
      made->write = [writer](std::size_t item) { writer->write(item); };
      made->done = [this, unit] { note_done(unit); };
    };
    return work;
  }

  void note_done(std::int64_t unit) {
    {
      const std::lock_guard lock(mutex_);
      ++result_.units_done;
    }
    run_.note_done(unit, 1);
  }

  Engine& engine_;
  const ExportOptions& options_;
  const std::shared_ptr<OutputStore> output_;
  const std::unique_ptr<ExportForm> form_;
  const SourceVersions source_;
  RunRecord record_;
  RecordedRun run_;
  std::mutex mutex_;  // guards the members below
  ExportResult result_;
};

}  // namespace

std::int64_t batches_per_unit(const View& view, std::int64_t first, std::int64_t end,
                              std::uint64_t object_bytes, std::uint64_t memory) {
  const std::uint64_t bytes = std::max<std::uint64_t>(1, batch_bytes(view, first));
  // Two units at a time, each with its encoded form.
  const std::uint64_t wanted = std::min(object_bytes, memory / 4) / bytes;
  return std::clamp<std::int64_t>(
      static_cast<std::int64_t>(std::min<std::uint64_t>(wanted, INT32_MAX)), 1,
      std::max<std::int64_t>(1, end - first));
}

ExportResult run_export(Engine& engine, const ExportOptions& options,
                        const std::shared_ptr<OutputStore>& output) {
  try {
    return ExportRun(engine, options, output).run();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::interrupted || !options.cancelled || !options.cancelled()) throw;
    return {.state = ExportResult::State::interrupted};
  }
}

}  // namespace batchfs
