#pragma once
// For calls that only the end of the process may end, those to a file system whose server hangs for
// instance.

#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace batchfs {

/// What `call` gives, or throws, within this time; nullopt when it takes longer: its thread then
/// lives on, so that `call` must own what it uses.
template <class Call>
auto answer_within(std::chrono::milliseconds patience, Call call)
    -> std::optional<decltype(call())> {
  const auto answer = std::make_shared<std::promise<decltype(call())>>();
  auto given = answer->get_future();
  std::thread([answer, call = std::move(call)] {
    try {
      answer->set_value(call());
    } catch (...) {
      answer->set_exception(std::current_exception());
    }
  }).detach();
  if (given.wait_for(patience) != std::future_status::ready) return std::nullopt;
  return given.get();
}

}  // namespace batchfs
