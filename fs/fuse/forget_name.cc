#include "fs/fuse/forget_name.h"

#include <sys/uio.h>

#include "fs/fuse/fuse_abi.h"

namespace batchfs {

namespace {

bool notify(int fuse, Ino parent, std::string_view name, std::uint32_t flags) {
  fuse_abi::InvalidatedEntry entry{parent, static_cast<std::uint32_t>(name.size()), flags};
  fuse_abi::OutHeader header{
      static_cast<std::uint32_t>(sizeof header + sizeof entry + name.size() + 1),
      fuse_abi::kNotifyInvalidEntry, 0};
  char end = 0;
  iovec parts[] = {{&header, sizeof header},
                   {&entry, sizeof entry},
                   {const_cast<char*>(name.data()), name.size()},  // it is only read
                   {&end, 1}};
  return ::writev(fuse, parts, 4) >= 0;
}

}  // namespace

bool forget_name(int fuse, Ino parent, std::string_view name) {
  return notify(fuse, parent, name, 0);
}

bool expire_name(int fuse, Ino parent, std::string_view name) {
  return notify(fuse, parent, name, fuse_abi::kExpireOnly);
}

}  // namespace batchfs
