#define FUSE_USE_VERSION 314
#include "fs/fuse/directory_page.h"

#include <fuse3/fuse_lowlevel.h>
#include <sys/stat.h>

namespace batchfs {

std::string directory_page(const Files& files, Ino directory, std::size_t size,
                           std::uint64_t offset) {
  std::string page(size, '\0');
  std::size_t used = 0;
  const auto add = [&](const char* name, Ino entry, bool is_directory, std::uint64_t next) {
    struct stat attributes {};
    attributes.st_ino = entry;
    attributes.st_mode = is_directory ? S_IFDIR : files.link_target(entry) ? S_IFLNK : S_IFREG;
    const std::size_t needed =  // the request is not looked at
        fuse_add_direntry(nullptr, page.data() + used, size - used, name, &attributes,
                          static_cast<off_t>(next));
    if (needed > size - used) return false;
    used += needed;
    return true;
  };
  bool room = true;
  if (offset == 0) room = add(".", directory, true, 1);
  if (room && offset <= 1) room = add("..", files.parent(directory).value_or(kRootIno), true, 2);
  if (room)
    files.list(directory, offset < 2 ? 0 : offset - 2,
               [&](const std::string& name, Ino entry, bool is_directory, std::uint64_t next) {
                 return add(name.c_str(), entry, is_directory, next + 2);
               });
  page.resize(used);
  return page;
}

}  // namespace batchfs
