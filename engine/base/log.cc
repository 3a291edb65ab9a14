#include "engine/base/log.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/ringbuffer_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "engine/base/shown_line.h"

namespace batchfs {

namespace {

constexpr std::size_t kKeptLines = 4096;
constexpr const char* kPattern = "%Y-%m-%dT%H:%M:%S.%e %l %v";
constexpr std::string_view kNames[] = {"debug", "info", "warning", "error"};
constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info,
                                                 spdlog::level::warn, spdlog::level::err};

/// The journal's priority of a line, in angle brackets: sd-daemon(3).
class JournalPriority final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& to) override {
    const char digit = message.level >= spdlog::level::err    ? '3'
                       : message.level == spdlog::level::warn ? '4'
                       : message.level == spdlog::level::info ? '6'
                                                              : '7';
    to.push_back('<');
    to.push_back(digit);
    to.push_back('>');
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<JournalPriority>();
  }
};

}  // namespace

struct Log::Impl {
  std::shared_ptr<spdlog::sinks::ringbuffer_sink_mt> ring =
      std::make_shared<spdlog::sinks::ringbuffer_sink_mt>(kKeptLines);
  std::unique_ptr<spdlog::logger> logger;
};

Log::Log(bool to_stderr, LogLevel level) : impl_(std::make_unique<Impl>()) {
  std::vector<spdlog::sink_ptr> sinks{impl_->ring};
  if (to_stderr) sinks.push_back(std::make_shared<spdlog::sinks::stderr_sink_mt>());
  impl_->logger = std::make_unique<spdlog::logger>("batchfs", sinks.begin(), sinks.end());
  impl_->logger->set_pattern(kPattern);
  if (to_stderr && is_journal(STDERR_FILENO, std::getenv("JOURNAL_STREAM"))) {
    auto formatter = std::make_unique<spdlog::pattern_formatter>();
    formatter->add_flag<JournalPriority>('*').set_pattern("%*%v");
    sinks.back()->set_formatter(std::move(formatter));
  }
  set_level(level);
}

Log::~Log() = default;

void Log::write(LogLevel level, std::string_view line) {
  const spdlog::level::level_enum kind = kLevels[static_cast<int>(level)];
  if (impl_->logger->should_log(kind)) impl_->logger->log(kind, "{}", shown_line(line));
}

void Log::set_level(LogLevel level) { impl_->logger->set_level(kLevels[static_cast<int>(level)]); }

LogLevel Log::level() const {
  const auto* found = std::find(std::begin(kLevels), std::end(kLevels), impl_->logger->level());
  return static_cast<LogLevel>(found - std::begin(kLevels));
}

std::string Log::text() const {
  std::string text;
  for (const std::string& line : impl_->ring->last_formatted()) text += line;
  return text;
}

std::string_view log_level_name(LogLevel level) { return kNames[static_cast<int>(level)]; }

std::optional<LogLevel> parse_log_level(std::string_view name) {
  const auto* found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames)) return std::nullopt;
  return static_cast<LogLevel>(found - std::begin(kNames));
}

bool is_journal(int fd, const char* journal_stream) {
  struct stat status {};
  if (journal_stream == nullptr || ::fstat(fd, &status) != 0) return false;
  return fmt::format("{}:{}", status.st_dev, status.st_ino) == journal_stream;
}

}  // namespace batchfs
