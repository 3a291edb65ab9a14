#include "engine/store/local/beneath.h"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

#include "engine/base/error.h"

namespace batchfs {

namespace {

constexpr int kMaxLinks = 40;  // of one path, as in path_resolution(7)
constexpr int kMaxTries = 16;  // while another process renames directories of the path
constexpr std::size_t kMaxLinkText = 4096;

struct Component {
  std::string name;
  std::string link;  // the path of the link that leads there; empty: the path itself
};

/// Puts the components of `path` at the front of `rest`.
void push_front(std::deque<Component>& rest, std::string_view path, const std::string& link) {
  std::vector<Component> parts;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view name = path.substr(begin, end - begin);
    begin = end + 1;
    if (!name.empty() && name != ".") parts.push_back({std::string(name), link});
  }
  rest.insert(rest.begin(), parts.begin(), parts.end());
}

/// A directory that was entered on the way.
struct Entered {
  Descriptor descriptor;
  std::string path;
};

/// The text of the link `name`; empty, with errno, when it is none.
std::string read_link(int directory, const std::string& name) {
  std::string text(kMaxLinkText, '\0');
  const ssize_t size = ::readlinkat(directory, name.c_str(), text.data(), text.size());
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return text;
}

Error leads_outside(const std::string& link, const std::filesystem::path& root) {
  return Error(ErrorCode::access_denied,
               fmt::format("the symbolic link '{}' leads outside the store; --follow-links (-o "
                           "follow-links) allows that",
                           link),
               root.string());
}

}  // namespace

Beneath::Beneath(std::filesystem::path root, Links links, Resolver resolver)
    : root_(std::move(root)),
      directory_(::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
      links_(links),
      resolver_(resolver) {}

Descriptor Beneath::open(const std::string& path, int flags) const {
  if (links_ == Links::anywhere)
    return Descriptor(::openat(descriptor(), path.c_str(), flags | O_CLOEXEC));
  return resolver_ == Resolver::by_hand ? open_by_hand(path, flags) : open_in_kernel(path, flags);
}

Descriptor Beneath::open_in_kernel(const std::string& path, int flags) const {
  open_how how{};
  how.flags = static_cast<unsigned>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  for (int tries = 0; tries < kMaxTries; ++tries) {
    const long fd = ::syscall(SYS_openat2, descriptor(), path.c_str(), &how, sizeof how);
    if (fd >= 0) return Descriptor(static_cast<int>(fd));
    switch (errno) {
      case EAGAIN:  // a directory above `..` in a link was being renamed
      case EINTR:
        continue;
      case EXDEV:   // a link leads outside: find out which
      case ENOSYS:  // before Linux 5.6
      case EPERM:   // seccomp filters of containers and services answer so
        return open_by_hand(path, flags);
      default:
        return Descriptor(-1);
    }
  }
  return open_by_hand(path, flags);
}

Descriptor Beneath::open_by_hand(const std::string& path, int flags) const {
  std::deque<Component> rest;
  push_front(rest, path, "");
  std::vector<Entered> below;
  for (int links = 0;;) {
    const int current = below.empty() ? descriptor() : below.back().descriptor.get();
    if (rest.empty()) return Descriptor(::openat(current, ".", flags | O_CLOEXEC));
    const Component component = std::move(rest.front());
    rest.pop_front();
    if (component.name == "..") {
      if (below.empty()) throw leads_outside(component.link, root_);
      below.pop_back();
      continue;
    }
    const std::string here =
        below.empty() ? component.name : below.back().path + "/" + component.name;
    const int wanted = rest.empty() ? flags : O_PATH | O_DIRECTORY;
    // With O_PATH alone, the descriptor would be that of the link itself.
    const bool opens_links = (wanted & O_PATH) != 0 && (wanted & O_DIRECTORY) == 0;
    std::string link = opens_links ? read_link(current, component.name) : std::string();
    if (link.empty()) {
      Descriptor opened(::openat(current, component.name.c_str(), wanted | O_NOFOLLOW | O_CLOEXEC));
      if (opened.get() >= 0 && rest.empty()) return opened;
      if (opened.get() >= 0) {
        below.push_back({std::move(opened), here});
        continue;
      }
      const int why = errno;
      if (why == ELOOP || why == ENOTDIR) link = read_link(current, component.name);
      errno = why;
      if (link.empty()) return opened;
    }
    if (++links > kMaxLinks) {
      errno = ELOOP;
      return Descriptor(-1);
    }
    if (link.front() == '/') throw leads_outside(here, root_);
    push_front(rest, link, here);
  }
}

}  // namespace batchfs
