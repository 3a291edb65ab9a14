#pragma once
// A directory as a store.
//
// The store holds the directory open: a directory that is moved is read where it went, and another
// one that takes its path is not looked at.
//
// An object has one version, its file's device, inode, size, mtime and ctime: an object that
// changes or is removed after its first read is Error{stale}. The version is compared before and
// after each read, so a file that is rewritten in place meanwhile is noticed, too. Time stamps are
// as coarse as the kernel's clock tick on Linux before 6.13: a read of a file that changed a moment
// ago waits until a later change must have another time stamp. A single write(2) into the middle of
// a file that takes longer than this moment is not noticed, nor are writes through mappings that
// the kernel has not stamped yet.

#include <filesystem>

#include "engine/store/object_versions.h"
#include "engine/store/store.h"

namespace batchfs {

struct LocalStoreOptions {
  bool follow_links = false;  // links may lead out of the store; else that is Error{access_denied}
  ObjectVersions::Options versions = {};
};

/// Throws not_found unless `root` is a directory.
std::shared_ptr<Store> open_local_store(const std::filesystem::path& root,
                                        LocalStoreOptions options = {});

}  // namespace batchfs
