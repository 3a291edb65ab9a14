#pragma once
// Waiting for operations that complete through a callback.

#include <exception>
#include <future>
#include <memory>
#include <utility>
#include <variant>

namespace batchfs {

/// Waits for the outcome of `start`. `start(done)` has done(Outcome) called once, from any thread,
/// possibly before it returns; an Outcome is a value or an exception, which is thrown here. Not for
/// threads that are needed to call `done`.
template <typename Outcome, typename Start>
std::variant_alternative_t<0, Outcome> awaited(Start&& start) {
  // Shared: a thread may still be inside of set_value() when this one continues.
  const auto result = std::make_shared<std::promise<Outcome>>();
  std::forward<Start>(start)([result](Outcome outcome) { result->set_value(std::move(outcome)); });
  Outcome outcome = result->get_future().get();
  if (const auto* error = std::get_if<std::exception_ptr>(&outcome)) std::rethrow_exception(*error);
  return std::move(std::get<0>(outcome));
}

}  // namespace batchfs
