#include "engine/write/recorded_run.h"

#include <system_error>
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
  if (std::chrono::steady_clock::now() - saved_at_ >= save_every_) start_saving();
  if (hooks_.cancelled && hooks_.cancelled()) cancelled_ = true;
  return !cancelled_;
}

bool RecordedRun::note_finished() {
  std::vector<std::int64_t> finished;
  {
    const std::lock_guard lock(mutex_);
    finished.swap(finished_);
  }
  for (const std::int64_t unit : finished) record_.note(unit);
  return !finished.empty();
}

void RecordedRun::start_saving() {
  if (save_failed_) return;  // the run ends, and waits for its work with further ticks
  if (saving_.valid()) {
    if (saving_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
    save_failed_ = true;
    saving_.get();
    save_failed_ = false;
  }
  saved_at_ = std::chrono::steady_clock::now();
  if (!note_finished()) return;
  try {
    saving_ = std::async(std::launch::async, [this] {
      if (hooks_.before_save) hooks_.before_save();
      record_.save();
    });
  } catch (const std::system_error&) {  // no more threads
    if (hooks_.before_save) hooks_.before_save();
    record_.save();
  }
}

void RecordedRun::save() {
  if (saving_.valid()) saving_.get();
  if (!note_finished()) return;
  if (hooks_.before_save) hooks_.before_save();
  record_.save();
}

}  // namespace batchfs
