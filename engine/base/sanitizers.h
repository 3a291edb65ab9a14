#pragma once
// Which sanitizer the program is built with: g++ defines macros, clang has features.

#if defined(__has_feature)
#define BATCHFS_HAS_FEATURE(feature) __has_feature(feature)
#else
#define BATCHFS_HAS_FEATURE(feature) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || BATCHFS_HAS_FEATURE(address_sanitizer)
#define BATCHFS_ADDRESS_SANITIZER 1
#else
#define BATCHFS_ADDRESS_SANITIZER 0
#endif

#if defined(__SANITIZE_THREAD__) || BATCHFS_HAS_FEATURE(thread_sanitizer)
#define BATCHFS_THREAD_SANITIZER 1
#else
#define BATCHFS_THREAD_SANITIZER 0
#endif

#undef BATCHFS_HAS_FEATURE
