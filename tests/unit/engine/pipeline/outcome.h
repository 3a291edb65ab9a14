#pragma once
// An engine's answer as a future.

#include <future>
#include <memory>
#include <string>
#include <utility>

#include "engine/pipeline/engine.h"

namespace batchfs {

using Outcome = std::future<std::shared_ptr<const Batch>>;

/// Calls `open` with a callback that sets the outcome, and sets `*id` to the returned waiter.
template <class Open>
Outcome outcome_of(Open&& open, Engine::WaiterId* id) {
  auto promise = std::make_shared<std::promise<std::shared_ptr<const Batch>>>();
  Outcome outcome = promise->get_future();
  const Engine::WaiterId waiter =
      open([promise](std::shared_ptr<const Batch> batch, std::exception_ptr error) {
        if (error)
          promise->set_exception(error);
        else
          promise->set_value(std::move(batch));
      });
  if (id != nullptr) *id = waiter;
  return outcome;
}

inline Outcome start(Engine& engine, const BatchRequest& request, Engine::WaiterId* id = nullptr) {
  return outcome_of([&](auto done) { return engine.open(request, std::move(done)); }, id);
}

inline Outcome start_box(Engine& engine, const std::shared_ptr<const Array>& array, const Box& box,
                         const std::string& header, Engine::WaiterId* id = nullptr) {
  return outcome_of(
      [&](auto done) { return engine.arrays().open_box(array, box, header, std::move(done)); }, id);
}

}  // namespace batchfs
