#include "fs/export/tar.h"

#include <fmt/format.h>

#include "engine/base/error.h"

namespace batchfs {

namespace {

constexpr std::uint64_t kTarBlock = 512;

}  // namespace

std::string tar_header(const std::string& name, std::uint64_t size) {
  if (name.size() > 100)
    throw Error(ErrorCode::not_supported, "a name in a tar archive has at most 100 bytes", name);
  if (size >= UINT64_C(1) << 33)
    throw Error(ErrorCode::not_supported, "a member of a tar archive has less than 8 GB", name);
  std::string header(kTarBlock, '\0');
  const auto put = [&header](std::size_t at, const std::string& text) {
    header.replace(at, text.size(), text);
  };
  put(0, name);
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, fmt::format("{:011o}", size));
  put(136, "00000000000");
  put(148, "        ");  // the checksum counts as spaces
  put(156, "0");
  put(257, std::string("ustar\0"
                       "00",
                       8));
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(148, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  return header;
}

std::string tar_padding(std::uint64_t size) {
  return std::string((kTarBlock - size % kTarBlock) % kTarBlock, '\0');
}

std::string tar_end() { return std::string(2 * kTarBlock, '\0'); }

}  // namespace batchfs
