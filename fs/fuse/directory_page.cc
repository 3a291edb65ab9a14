#define FUSE_USE_VERSION 314
#include "fs/fuse/directory_page.h"

#include <fuse3/fuse_lowlevel.h>
#include <sys/stat.h>

namespace batchfs {

std::string directory_page(const Files& files, Ino directory, std::size_t size,
                           std::uint64_t offset) {
  std::string page(size, '\0');
  std::size_t used = 0;
  const auto add = [&](const char* name, std::uint64_t shown, mode_t mode, std::uint64_t next) {
    struct stat attributes {};
    attributes.st_ino = shown;
    attributes.st_mode = mode;
    const std::size_t needed =  // the request is not looked at
        fuse_add_direntry(nullptr, page.data() + used, size - used, name, &attributes,
                          static_cast<off_t>(next));
    if (needed > size - used) return false;
    used += needed;
    return true;
  };
  bool room = true;
  if (offset == 0) room = add(".", files.attributes(directory).value_or(Inode{}).shown, S_IFDIR, 1);
  if (room && offset <= 1)
    room = add("..", files.parent_shown(directory).value_or(kRootIno), S_IFDIR, 2);
  if (room)
    files.list(directory, offset < 2 ? 0 : offset - 2, [&](const Files::Entry& entry) {
      return add(entry.name.c_str(), entry.shown,
                 entry.directory ? S_IFDIR
                 : entry.link    ? S_IFLNK
                                 : S_IFREG,
                 entry.next + 2);
    });
  page.resize(used);
  return page;
}

}  // namespace batchfs
