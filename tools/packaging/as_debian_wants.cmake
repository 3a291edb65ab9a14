# Run by cpack on what is about to be packed: compressed man pages, a copyright, a changelog, and
# why lintian is overridden.

set(share ${CPACK_TEMPORARY_DIRECTORY}/usr/share)
set(doc ${share}/doc/batchfs)
file(MAKE_DIRECTORY ${doc})
configure_file(${CMAKE_CURRENT_LIST_DIR}/changelog ${doc}/changelog COPYONLY)
configure_file(${CMAKE_CURRENT_LIST_DIR}/lintian-overrides ${share}/lintian/overrides/batchfs
  COPYONLY)
file(READ ${CMAKE_CURRENT_LIST_DIR}/../../LICENSE licence)
file(WRITE ${doc}/copyright "batchfs is free software.\n\n${licence}")
file(GLOB pages ${share}/man/man*/*.[1-8])
execute_process(COMMAND gzip -9nf ${pages} ${doc}/changelog COMMAND_ERROR_IS_FATAL ANY)
file(CREATE_LINK mount.batchfs.8.gz ${share}/man/man8/mount.fuse.batchfs.8.gz SYMBOLIC)
file(GLOB_RECURSE plain LIST_DIRECTORIES false ${share}/*)
file(CHMOD ${plain} FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
