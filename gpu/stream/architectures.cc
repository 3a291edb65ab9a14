#include "gpu/stream/architectures.h"

#include <charconv>
#include <optional>
#include <vector>

namespace batchfs::gpu {

namespace {

struct Architecture {
  int major = 0, minor = 0;
  char suffix = 0;  // 'a': this capability alone; 'f': its family
  bool code = false, ptx = false;

  bool runs_on(ComputeCapability device) const {
    if (suffix == 'a') return major == device.major && minor == device.minor;
    if (code && major == device.major && minor <= device.minor) return true;
    if (suffix == 'f') return ptx && major == device.major && minor <= device.minor;
    return ptx && (major < device.major || (major == device.major && minor <= device.minor));
  }
};

std::optional<Architecture> parsed(std::string_view word) {
  Architecture result{.code = true, .ptx = true};
  if (const std::size_t dash = word.find('-'); dash != std::string_view::npos) {
    const std::string_view kind = word.substr(dash + 1);
    if (kind != "real" && kind != "virtual") return std::nullopt;
    result.code = kind == "real";
    result.ptx = !result.code;
    word = word.substr(0, dash);
  }
  if (!word.empty() && (word.back() == 'a' || word.back() == 'f')) {
    result.suffix = word.back();
    word.remove_suffix(1);
  }
  int number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size() || number < 10) return std::nullopt;
  result.major = number / 10;
  result.minor = number % 10;
  return result;
}

std::string text_of(int major, int minor) {
  return std::to_string(major) + "." + std::to_string(minor);
}

}  // namespace

std::string why_no_kernel(std::string_view built, ComputeCapability device) {
  std::string list;
  while (!built.empty()) {
    const std::size_t comma = built.find(',');
    const std::optional<Architecture> one = parsed(built.substr(0, comma));
    built = comma == std::string_view::npos ? std::string_view() : built.substr(comma + 1);
    if (!one || one->runs_on(device)) return "";
    if (!list.empty()) list += ", ";
    list += text_of(one->major, one->minor);
    if (one->ptx && one->suffix == 0) list += " and newer";
  }
  return "not supported by this build: compute capability " + text_of(device.major, device.minor) +
         ", built for " + (list.empty() ? "none" : list);
}

}  // namespace batchfs::gpu
