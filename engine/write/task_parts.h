#pragma once
// The parts of a run that many tasks share: a task puts one object, "part-TASK", when it is done;
// the results are merged when all are complete.
//
// A part that a killed process began does not exist: an object is put whole or not at all. Each
// holds the identity of its run and a checksum, so that parts of other runs are refused.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json.h"
#include "engine/store/output/output_store.h"

namespace batchfs {

class TaskParts {
 public:
  /// `identity` as claim_output() takes it, and with the number of tasks as "tasks". The output
  /// outlives it.
  TaskParts(OutputStore& output, Json identity);

  int tasks() const { return tasks_; }

  /// Takes the output for this run. Throws as claim_output().
  void claim();

  /// Throws invalid_argument for a part of another run, corrupt.
  bool has(int task) const;
  void put(int task, std::string_view result);
  /// Calls `use` with the results of the tasks, in order. At a missing one throws not_found, which
  /// names some of the missing; otherwise as has().
  void for_each(const std::function<void(int task, std::string_view result)>& use) const;

 private:
  std::string_view result_of(int task, const Buffer& bytes) const;

  OutputStore& output_;
  const Json identity_;
  const int tasks_;
};

}  // namespace batchfs
