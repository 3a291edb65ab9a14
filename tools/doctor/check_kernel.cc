// doctor: the kernel and its FUSE features.

#include <charconv>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include <sys/utsname.h>
#include <unistd.h>

#include "engine/base/strings.h"
#include "tools/doctor/checks.h"

namespace batchfs {

namespace {

struct Version {
  int major = 0, minor = 0;
  bool operator<(const Version& other) const {
    return major != other.major ? major < other.major : minor < other.minor;
  }
};

Version version_of(const std::string& release) {
  Version version;
  const char* end = release.data() + release.size();
  const auto first = std::from_chars(release.data(), end, version.major);
  if (first.ec == std::errc() && first.ptr != end && *first.ptr == '.')
    std::from_chars(first.ptr + 1, end, version.minor);
  return version;
}

/// The first kernel with the feature, and its use.
struct Feature {
  const char* name;
  Version since;
  const char* with;
  const char* without;
};
constexpr Feature kFeatures[] = {
    {"direct-io mmap",
     {6, 6},
     "batches that the kernel does not read itself can be mapped",
     "without passthrough, batches cannot be mapped (numpy's mmap_mode, safetensors)"},
    {"passthrough",
     {6, 9},
     "the kernel reads batches itself, without copies",
     "every read goes through batchfs"},
    {"resend",
     {6, 9},
     "a restarted daemon answers the requests of the one before",
     "reads in flight fail when the daemon dies"},
};

std::string read_first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

bool on_path(const std::string& program) {
  const char* path = ::getenv("PATH");
  for (const std::string& directory : split(path != nullptr ? path : "/usr/bin:/bin", ':'))
    if (::access((directory + "/" + program).c_str(), X_OK) == 0) return true;
  return false;
}

}  // namespace

Checks check_kernel_release(const std::string& release) {
  const Version version = version_of(release);
  Checks checks;
  if (version.major == 0)
    return {{Check::State::note, "kernel", fmt::format("'{}' tells no version", release), ""}};
  for (const Feature& feature : kFeatures) {
    const bool has = !(version < feature.since);
    checks.push_back(
        {has ? Check::State::ok : Check::State::note, feature.name,
         has ? feature.with : fmt::format("Linux {} lacks it: {}", release, feature.without),
         has ? ""
             : fmt::format("Linux {}.{} or later has it", feature.since.major,
                           feature.since.minor)});
  }
  return checks;
}

Checks check_kernel() {
  utsname name{};
  ::uname(&name);
  Checks checks{{Check::State::ok, "kernel",
                 fmt::format("{} {} {}", name.sysname, name.release, name.machine), ""}};
  const Checks features = check_kernel_release(name.release);
  checks.insert(checks.end(), features.begin(), features.end());
  return checks;
}

bool allows_other(const std::string& fuse_conf) {
  std::istringstream lines(fuse_conf);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find_first_not_of(" \t"), last = line.find_last_not_of(" \t\r");
    if (first != std::string::npos && line.substr(first, last - first + 1) == "user_allow_other")
      return true;
  }
  return false;
}

Checks check_fuse() {
  using enum Check::State;
  Checks checks;
  const bool is_root = ::geteuid() == 0;
  if (::access("/dev/fuse", F_OK) != 0) {
    checks.push_back({problem, "/dev/fuse", "missing: `batchfs mount` cannot work",
                      "load the module with `modprobe fuse`; start a container with --device "
                      "/dev/fuse --cap-add SYS_ADMIN. "
                      "`batchfs serve` serves batches without a mount"});
  } else if (::access("/dev/fuse", R_OK | W_OK) != 0) {
    checks.push_back({problem, "/dev/fuse", "this user may not open it: nothing can be mounted",
                      "allow it with `chmod 666 /dev/fuse`, the usual mode"});
  } else {
    checks.push_back({ok, "/dev/fuse", "can be opened", ""});
  }
  if (on_path("fusermount3")) {
    checks.push_back({ok, "fusermount3", "is there", ""});
  } else {
    checks.push_back({is_root ? note : problem, "fusermount3",
                      "missing: ordinary users cannot mount", "install the package fuse3"});
  }
  std::ifstream file("/etc/fuse.conf");
  std::stringstream text;
  text << file.rdbuf();
  if (is_root || allows_other(text.str())) {
    checks.push_back(
        {ok, "allow-other", "mounts may be read by other users, with --allow-other", ""});
  } else {
    checks.push_back(
        {note, "allow-other", "mounts of this user cannot be read by others, root included",
         "if that is needed, write the line user_allow_other into /etc/fuse.conf, as root"});
  }
  const std::string unprivileged = read_first_line("/proc/sys/kernel/unprivileged_userns_clone");
  if (!is_root)
    checks.push_back({note, "passthrough",
                      "only root's mounts may have the kernel read batches itself",
                      unprivileged == "1" ? "mount as root, with --allow-other"
                                          : "mount as root (systemd, fstab), with --allow-other"});
  return checks;
}

}  // namespace batchfs
