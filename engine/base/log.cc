#include "engine/base/log.h"

#include <vector>

#include <spdlog/sinks/ringbuffer_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace batchfs {

namespace {
constexpr std::size_t kKeptLines = 4096;
}

struct Log::Impl {
  std::shared_ptr<spdlog::sinks::ringbuffer_sink_mt> ring =
      std::make_shared<spdlog::sinks::ringbuffer_sink_mt>(kKeptLines);
  std::unique_ptr<spdlog::logger> logger;
};

Log::Log(bool to_stderr, LogLevel level) : impl_(std::make_unique<Impl>()) {
  std::vector<spdlog::sink_ptr> sinks{impl_->ring};
  if (to_stderr) sinks.push_back(std::make_shared<spdlog::sinks::stderr_sink_mt>());
  impl_->logger = std::make_unique<spdlog::logger>("batchfs", sinks.begin(), sinks.end());
  impl_->logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v");
  static constexpr spdlog::level::level_enum kLevels[] = {
      spdlog::level::debug, spdlog::level::info, spdlog::level::warn, spdlog::level::err};
  impl_->logger->set_level(kLevels[static_cast<int>(level)]);
}

Log::~Log() = default;

void Log::write(LogLevel level, std::string_view line) {
  static constexpr spdlog::level::level_enum kLevels[] = {
      spdlog::level::debug, spdlog::level::info, spdlog::level::warn, spdlog::level::err};
  impl_->logger->log(kLevels[static_cast<int>(level)], "{}", line);
}

std::string Log::text() const {
  std::string text;
  for (const std::string& line : impl_->ring->last_formatted()) text += line;
  return text;
}

}  // namespace batchfs
