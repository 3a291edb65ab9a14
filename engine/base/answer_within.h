#pragma once
// For calls that may hang until the process ends, such as calls into a file system whose server
// hangs.

#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace batchfs {

/// Returns or throws the result of `call` within this time; nullopt when the call takes longer: its
/// thread then lives on, so that `call` must own everything it uses.
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
