# Installs the files beside the programs: man pages, completions, the service, mount.batchfs, and
# the files that let others find the reader library; then makes the Debian package (with
# tools/package).

include(CMakePackageConfigHelpers)

foreach(section 1 5 7 8)
  file(GLOB pages CONFIGURE_DEPENDS man/*.${section})
  install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()

# mount(8) looks for mount.batchfs for `-t batchfs`, for mount.fuse.batchfs for `-t fuse.batchfs`,
# in /sbin.
set(made ${CMAKE_BINARY_DIR}/packaging)
file(MAKE_DIRECTORY ${made})
file(CREATE_LINK ../bin/batchfs ${made}/mount.batchfs SYMBOLIC)
file(CREATE_LINK mount.batchfs ${made}/mount.fuse.batchfs SYMBOLIC)
install(FILES ${made}/mount.batchfs ${made}/mount.fuse.batchfs DESTINATION ${CMAKE_INSTALL_SBINDIR})

install(FILES tools/packaging/batchfs@.service tools/packaging/batchfs-end@.service DESTINATION
  lib/systemd/system)
install(FILES tools/packaging/era5.conf tools/packaging/slurm/train.sbatch
  tools/packaging/slurm/train.py tools/packaging/Containerfile
  tools/packaging/kubernetes/sidecar.yaml tools/packaging/kubernetes/daemonset.yaml
  tools/packaging/slurm/tasks.sbatch
  tools/packaging/cache/nginx.conf tools/packaging/kubernetes/cache.yaml
  tools/packaging/kubernetes/job.yaml
  DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/batchfs/examples)

# The program writes its own completions, so they are never out of step.
set(completions)
foreach(shell bash zsh fish)
  add_custom_command(OUTPUT ${made}/${shell} COMMAND batchfs completion ${shell} > ${made}/${shell}
    DEPENDS batchfs VERBATIM)
  list(APPEND completions ${made}/${shell})
endforeach()
add_custom_target(completions ALL DEPENDS ${completions})

# All that is installed.
add_custom_target(packaged DEPENDS batchfs batchfs_reader batchfs_writer completions)
if(TARGET batchfs_reader_cuda)
  add_dependencies(packaged batchfs_reader_cuda)
endif()
install(FILES ${made}/bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME
  batchfs)
install(FILES ${made}/zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions RENAME
  _batchfs)
install(FILES ${made}/fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d RENAME
  batchfs.fish)

# `pkg-config batchfs_reader`, and find_package(batchfs_reader) with the target batchfs::reader; the
# same for the writer.
foreach(part reader writer)
  configure_file(tools/packaging/batchfs_${part}.pc.in ${made}/batchfs_${part}.pc @ONLY)
  write_basic_package_version_file(${made}/batchfs_${part}-config-version.cmake COMPATIBILITY
    SameMinorVersion)
  install(FILES ${made}/batchfs_${part}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  install(FILES ${made}/batchfs_${part}-config-version.cmake DESTINATION
    ${CMAKE_INSTALL_LIBDIR}/cmake/batchfs_${part})
  set_target_properties(batchfs_${part} PROPERTIES EXPORT_NAME ${part})
  install(EXPORT batchfs_${part} NAMESPACE batchfs:: FILE batchfs_${part}-config.cmake
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/batchfs_${part})
endforeach()

# Packing takes existing build results; it does not build, least of all the tests.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME batchfs)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Zarr stores as ready-made training batches")
set(CPACK_PACKAGE_DESCRIPTION
"batchfs mounts a Zarr store, local or remote, and shows it as directories of
training batches: samples are cut out, decoded, normalised, stacked and
shuffled as a view says, ahead of the reader. Any program that opens a file
can train.
.
The package has the program, its mount helper for fstab(5), a systemd unit,
and the C libraries by which programs read batches from shared memory and
write predictions.")
set(CPACK_PACKAGE_CONTACT "batchfs developers <batchfs@example.org>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/tools/packaging/as_debian_wants.cmake)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Programs that link with a library depend on this package; a trigger makes dpkg run ldconfig when
# the libraries come and go. (CPack's own scripts call ldconfig too, which Debian calls outdated;
# CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS has no trigger.)
set(needed "batchfs (>= ${PROJECT_VERSION})")
file(WRITE ${made}/shlibs "libbatchfs_reader 0 ${needed}\nlibbatchfs_writer 0 ${needed}\n")
file(WRITE ${made}/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${made}/shlibs ${made}/triggers)
set(CPACK_DEBIAN_PACKAGE_DEPENDS fuse3)  # fusermount3, for those who are not root
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS ca-certificates)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS
    # Libraries of optional codecs, loaded when they are first needed:
    "libzfp1t64 | libzfp1, libeccodes0, libaec0, libjpeg62-turbo, libopenjp2-7, liblerc4, libwebp7")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
