#include "engine/store/store_environment.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/system_error.h"

namespace batchfs {

namespace {

constexpr std::size_t kMaxFile = 1 << 20;

std::optional<FileText> read_small_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    throw Error(errno == EACCES ? ErrorCode::access_denied : ErrorCode::io,
                describe_system_error(errno), path);
  }
  const std::unique_ptr<const int, void (*)(const int*)> closer(&fd,
                                                                [](const int* f) { ::close(*f); });
  struct stat info {};
  if (::fstat(fd, &info) != 0) throw Error(ErrorCode::io, describe_system_error(errno), path);
  FileText file;
  file.others_can_read = (info.st_mode & 077) != 0;
  char block[16 << 10];
  for (;;) {
    const ssize_t got = ::read(fd, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error(ErrorCode::io, describe_system_error(errno), path);
    if (got == 0) return file;
    file.text.append(block, static_cast<std::size_t>(got));
    if (file.text.size() > kMaxFile)
      throw Error(ErrorCode::invalid_argument,
                  "larger than 1 MB: not a file of settings or credentials", path);
  }
}

/// The home directory of the current user in the system's user table.
std::optional<std::string> home_of_user() {
  char text[4096];
  passwd entry;
  passwd* found = nullptr;
  if (::getpwuid_r(::getuid(), &entry, text, sizeof text, &found) != 0 || found == nullptr)
    return std::nullopt;
  return *found->pw_dir == '\0' ? std::nullopt : std::optional<std::string>(found->pw_dir);
}

}  // namespace

std::optional<std::string> StoreEnvironment::first_variable(
    std::initializer_list<const char*> names) const {
  for (const char* name : names)
    if (auto value = variable(name)) return value;
  return std::nullopt;
}

std::optional<std::string> StoreEnvironment::in_home(const std::string& relative) const {
  const auto home = variable("HOME");
  return home ? std::optional(*home + "/" + relative) : std::nullopt;
}

StoreEnvironment process_environment(std::shared_ptr<HttpClient> client) {
  StoreEnvironment real;
  real.variable = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value != nullptr && *value != '\0') return value;
    // Services of the system are started without it.
    return name == "HOME" ? home_of_user() : std::nullopt;
  };
  real.file = read_small_file;
  real.fetch = [client](HttpRequest request) { return client->send_and_wait(std::move(request)); };
  real.now = [] { return std::chrono::system_clock::now(); };
  return real;
}

std::string_view text_of(const HttpResponse& response) {
  return {reinterpret_cast<const char*>(response.body.data()), response.body.size()};
}

bool is_another_vendors_machine(const StoreEnvironment& environment, const std::string& vendor) {
  const auto file = environment.file("/sys/class/dmi/id/sys_vendor");
  return file && file->text.find_first_not_of(" \n") != std::string::npos &&
         file->text.find(vendor) == std::string::npos;
}

bool is_loopback(const Uri& uri) {
  const bool is_address = uri.host.find_first_not_of("0123456789.") == std::string::npos;
  return uri.host == "localhost" || uri.host == "[::1]" ||
         (is_address && uri.host.starts_with("127."));
}

std::optional<WallTime> parse_utc_time(const std::string& text) {
  std::tm utc{};
  const char* end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &utc);
  if (end == nullptr) return std::nullopt;
  if (*end == '.') end += 1 + std::strspn(end + 1, "0123456789");
  if (std::strcmp(end, "Z") != 0 && std::strcmp(end, "+00:00") != 0) return std::nullopt;
  return std::chrono::system_clock::from_time_t(::timegm(&utc));
}

}  // namespace batchfs
