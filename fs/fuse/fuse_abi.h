#pragma once
// The few structures and flags of the kernel's FUSE protocol that libfuse 3.14 has no interface
// for. Source: include/uapi/linux/fuse.h of Linux 6.9 and later (protocol 7.40).

#include <cstdint>

#include <sys/ioctl.h>

namespace batchfs::fuse_abi {

inline constexpr std::uint32_t kInitOpcode = 26;

struct InHeader {
  std::uint32_t length, opcode;
  std::uint64_t unique, node;
  std::uint32_t uid, gid, pid;
  std::uint16_t extensions, padding;
};

struct OutHeader {
  std::uint32_t length;
  std::int32_t error;
  std::uint64_t unique;
};

struct InitIn {
  std::uint32_t major, minor, max_readahead, flags, flags2, unused[11];
};

struct InitOut {
  std::uint32_t major, minor, max_readahead, flags;
  std::uint16_t max_background, congestion_threshold;
  std::uint32_t max_write, time_granularity;
  std::uint16_t max_pages, map_alignment;
  std::uint32_t flags2, max_stack_depth;
  std::uint16_t request_timeout, unused[11];
};

struct OpenOut {
  std::uint64_t handle;
  std::uint32_t flags;
  std::int32_t backing_id;
};

struct InvalidatedEntry {
  std::uint64_t parent;
  std::uint32_t name_length, flags;
};

struct BackingMap {
  std::int32_t fd;
  std::uint32_t flags;
  std::uint64_t padding;
};

static_assert(sizeof(InHeader) == 40 && sizeof(OutHeader) == 16);
static_assert(sizeof(InitIn) == 64 && sizeof(InitOut) == 64);
static_assert(sizeof(OpenOut) == 16 && sizeof(BackingMap) == 16 && sizeof(InvalidatedEntry) == 16);

// INIT flags; those from bit 32 on are in flags2.
inline constexpr std::uint64_t kParallelDirops = UINT64_C(1) << 18;
inline constexpr std::uint64_t kInitExtended = UINT64_C(1) << 30;
inline constexpr std::uint64_t kDirectIoAllowMmap = UINT64_C(1) << 36;
inline constexpr std::uint64_t kPassthrough = UINT64_C(1) << 37;
inline constexpr std::uint64_t kHasResend = UINT64_C(1) << 39;

// Notifications are replies without a request, with the code in the error field.
inline constexpr std::int32_t kNotifyInvalidEntry = 3;
inline constexpr std::int32_t kNotifyResend = 7;

// Flags of an invalidated entry.
inline constexpr std::uint32_t kExpireOnly = 1u << 0;

// Open flags.
inline constexpr std::uint32_t kOpenDirectIo = 1u << 0;
inline constexpr std::uint32_t kOpenKeepCache = 1u << 1;
inline constexpr std::uint32_t kOpenNoFlush = 1u << 5;
inline constexpr std::uint32_t kOpenPassthrough = 1u << 7;

inline const unsigned long kBackingOpen = _IOW(229, 1, BackingMap);
inline const unsigned long kBackingClose = _IOW(229, 2, std::uint32_t);

}  // namespace batchfs::fuse_abi
