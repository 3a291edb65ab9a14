#include "engine/write/recorded_run.h"

#include <utility>

namespace batchfs {

RecordedRun::RecordedRun(RunRecord& record, Hooks hooks, std::chrono::milliseconds save_every)
    : record_(record), hooks_(std::move(hooks)), save_every_(save_every) {}

void RecordedRun::expect(std::int64_t done, std::int64_t all) {
  const std::lock_guard lock(mutex_);
  done_ = done;
  all_ = all;
}

bool RecordedRun::run(const RegionLimits& limits,
                      const std::function<std::shared_ptr<RegionWork>()>& next) {
  bool all = false;
  try {
    all = run_regions(limits, next, [this] { return tick(); });
  } catch (const std::exception& failure) {
    try {
      save();
    } catch (const Error&) {
      // The first error names the cause: a full disk, say.
    }
    const auto* error = dynamic_cast<const Error*>(&failure);
    if (error != nullptr && error->code() == ErrorCode::interrupted && cancelled_) return false;
    throw;
  }
  save();
  return all;
}

void RecordedRun::note_done(std::int64_t unit, std::int64_t amount) {
  const std::lock_guard lock(mutex_);
  finished_.push_back(unit);
  done_ += amount;
}

void RecordedRun::keep_up() {
  if (!tick()) throw Error(ErrorCode::interrupted, "the run was interrupted");
}

bool RecordedRun::tick() {
  if (hooks_.progress) {
    std::int64_t done;
    {
      const std::lock_guard lock(mutex_);
      done = done_;
    }
    hooks_.progress(done, all_);
  }
  if (std::chrono::steady_clock::now() - saved_at_ >= save_every_) save();
  if (hooks_.cancelled && hooks_.cancelled()) cancelled_ = true;
  return !cancelled_;
}

void RecordedRun::save() {
  std::vector<std::int64_t> finished;
  {
    const std::lock_guard lock(mutex_);
    finished.swap(finished_);
  }
  saved_at_ = std::chrono::steady_clock::now();
  if (finished.empty()) return;
  for (const std::int64_t unit : finished) record_.note(unit);
  if (hooks_.before_save) hooks_.before_save();
  record_.save();
}

}  // namespace batchfs
