/* A library for LD_PRELOAD: makes the n-th call of one kind fail, or that call and all later ones, in every
 * process of a run.
 *
 * inject.py creates a file of struct State, names it in INJECT_STATE, and reads it afterwards. All processes of
 * the run map this file, so that calls are counted over the whole run: supervisor, daemon, helpers. Calls before
 * main() don't count: no program can handle a failure in the dynamic loader.
 *
 * Build: cc -shared -fPIC -O1 -o inject.so inject.c
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* The order is inject.py's KINDS. */
enum Kind { kMalloc, kOpen, kRead, kMmap, kFork, kThread, kWrite, kSync, kDescriptor, kTruncate, kKinds };

struct State {
  atomic_long calls[16];  /* by kind, those that failed included */
  atomic_long failed;     /* calls that were made to fail */
  long kind, at;          /* the call to fail, counted from 1; 0: none */
  long persists;          /* later calls of the kind fail too */
  long error;             /* errno */
};

static struct State* state; /* null until main() */

/* The file of INJECT_TRACE: the stack of each failed call, and of a crash, is appended to it. */
static const char* trace_path;

static void trace(const char* what) {
  static __thread int busy;
  if (trace_path == NULL || busy) return;
  busy = 1;
  const int fd = (int)syscall(SYS_openat, AT_FDCWD, trace_path,
                              O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd >= 0) {
    void* frames[64];
    const int count = backtrace(frames, 64);
    syscall(SYS_write, fd, what, strlen(what));
    backtrace_symbols_fd(frames, count, fd);
    syscall(SYS_close, fd);
  }
  busy = 0;
}

static void on_crash(int number) {
  trace("crash\n");
  signal(number, SIG_DFL);
  raise(number);
}

/* The file of INJECT_PLACES: each call is appended to it, with what tells its caller from others.
 */
static const char* places_path;

static void note_place(enum Kind kind, long call) {
  static __thread int busy;
  if (busy) return;
  busy = 1;
  enum { kOwn = 3, kCallers = 10 };
  void* frames[kOwn + kCallers] = {NULL};
  backtrace(frames, kOwn + kCallers);
  long record[3] = {(long)kind, call, 0};
  for (int i = kOwn; i < kOwn + kCallers; ++i) record[2] = record[2] * 1000003 ^ (long)frames[i];
  const int fd = (int)syscall(SYS_openat, AT_FDCWD, places_path,
                              O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd >= 0) {
    syscall(SYS_write, fd, record, sizeof record);
    syscall(SYS_close, fd);
  }
  busy = 0;
}

/* INJECT_CALLER: the libraries whose calls count. Empty: all calls count. */
static struct {
  uintptr_t begin, end;
} callers[8];
static int caller_count;

static int note_caller(struct dl_phdr_info* library, size_t size, void* text) {
  (void)size;
  if (strstr(library->dlpi_name, text) == NULL) return 0;
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const ElfW(Phdr)* segment = &library->dlpi_phdr[i];
    if (segment->p_type != PT_LOAD || (segment->p_flags & PF_X) == 0) continue;
    if (caller_count == sizeof callers / sizeof callers[0]) return 1;
    callers[caller_count].begin = library->dlpi_addr + segment->p_vaddr;
    callers[caller_count].end = callers[caller_count].begin + segment->p_memsz;
    ++caller_count;
  }
  return 0;
}

static int is_counted(const void* caller) {
  for (int i = 0; i < caller_count; ++i)
    if ((uintptr_t)caller >= callers[i].begin && (uintptr_t)caller < callers[i].end) return 1;
  return caller_count == 0;
}

/* Whether this call of the function that it stands in fails. */
#define fails(kind) fails_for(kind, __builtin_return_address(0))

static int fails_for(enum Kind kind, const void* caller) {
  if (state == NULL || !is_counted(caller)) return 0;
  const long call = atomic_fetch_add(&state->calls[kind], 1) + 1;
  if (places_path != NULL) note_place(kind, call);
  if (state->kind != (long)kind || state->at == 0) return 0;
  if (call != state->at && !(state->persists && call > state->at)) return 0;
  atomic_fetch_add(&state->failed, 1);
  trace("failed call\n");
  errno = (int)state->error;
  return 1;
}

/* Counters and queues of signals have no type. They live in the kernel, and their reads and writes
 * do not fail. */
static int has_type(int fd) {
  struct stat file;
  return syscall(SYS_fstat, fd, &file) != 0 || (file.st_mode & S_IFMT) != 0;
}

/* ---- memory ---- */

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t size) { return fails(kMalloc) ? NULL : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return fails(kMalloc) ? NULL : __libc_calloc(count, size); }
void* realloc(void* p, size_t size) { return fails(kMalloc) ? NULL : __libc_realloc(p, size); }
void* aligned_alloc(size_t alignment, size_t size) {
  return fails(kMalloc) ? NULL : __libc_memalign(alignment, size);
}
void* memalign(size_t alignment, size_t size) { return fails(kMalloc) ? NULL : __libc_memalign(alignment, size); }
int posix_memalign(void** p, size_t alignment, size_t size) {
  if (fails(kMalloc)) return ENOMEM;
  *p = __libc_memalign(alignment, size);
  return *p == NULL ? ENOMEM : 0;
}

/* ---- files ---- */

static mode_t mode_of(int flags, va_list list) {
  return (flags & (O_CREAT | __O_TMPFILE)) ? va_arg(list, mode_t) : 0;
}

int openat(int directory, const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  return fails(kOpen) ? -1 : (int)syscall(SYS_openat, directory, path, flags, mode);
}
int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  return fails(kOpen) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) __attribute__((alias("open")));
int openat64(int directory, const char* path, int flags, ...) __attribute__((alias("openat")));

ssize_t __read(
    int, void*,
    size_t); /* a cancellation point, as syscall(2) is not: libfuse cancels threads in it */
ssize_t read(int fd, void* to, size_t size) {
  return has_type(fd) && fails(kRead) ? -1 : __read(fd, to, size);
}
ssize_t pread(int fd, void* to, size_t size, off_t offset) {
  return fails(kRead) ? -1 : syscall(SYS_pread64, fd, to, size, offset);
}
ssize_t pread64(int fd, void* to, size_t size, off_t offset) __attribute__((alias("pread")));
ssize_t readv(int fd, const struct iovec* to, int count) {
  return fails(kRead) ? -1 : syscall(SYS_readv, fd, to, count);
}

/* Not of standard error: the error could not be said. */
ssize_t write(int fd, const void* from, size_t size) {
  return fd != STDERR_FILENO && has_type(fd) && fails(kWrite) ? -1
                                                              : syscall(SYS_write, fd, from, size);
}
ssize_t pwrite(int fd, const void* from, size_t size, off_t offset) {
  return fails(kWrite) ? -1 : syscall(SYS_pwrite64, fd, from, size, offset);
}
ssize_t pwrite64(int fd, const void* from, size_t size, off_t offset) __attribute__((alias("pwrite")));
ssize_t writev(int fd, const struct iovec* from, int count) {
  return fd != STDERR_FILENO && fails(kWrite) ? -1 : syscall(SYS_writev, fd, from, count);
}
int fsync(int fd) { return fails(kSync) ? -1 : (int)syscall(SYS_fsync, fd); }
int fdatasync(int fd) { return fails(kSync) ? -1 : (int)syscall(SYS_fdatasync, fd); }
int rename(const char* from, const char* to) { return fails(kSync) ? -1 : (int)syscall(SYS_rename, from, to); }
int ftruncate(int fd, off_t size) { return fails(kTruncate) ? -1 : (int)syscall(SYS_ftruncate, fd, size); }
int ftruncate64(int fd, off_t size) __attribute__((alias("ftruncate")));
int fallocate(int fd, int mode, off_t offset, off_t size) {
  return fails(kTruncate) ? -1 : (int)syscall(SYS_fallocate, fd, mode, offset, size);
}
int fallocate64(int fd, int mode, off_t offset, off_t size) __attribute__((alias("fallocate")));

void* mmap(void* address, size_t size, int protection, int flags, int fd, off_t offset) {
  return fails(kMmap) ? MAP_FAILED : (void*)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
}
void* mmap64(void* a, size_t s, int p, int f, int fd, off_t o) __attribute__((alias("mmap")));

/* ---- descriptors that are no files ---- */

int socket(int domain, int type, int protocol) {
  return fails(kDescriptor) ? -1 : (int)syscall(SYS_socket, domain, type, protocol);
}
int socketpair(int domain, int type, int protocol, int pair[2]) {
  return fails(kDescriptor) ? -1 : (int)syscall(SYS_socketpair, domain, type, protocol, pair);
}
int pipe2(int pair[2], int flags) { return fails(kDescriptor) ? -1 : (int)syscall(SYS_pipe2, pair, flags); }
int pipe(int pair[2]) { return pipe2(pair, 0); }
int accept4(int fd, struct sockaddr* address, socklen_t* size, int flags) {
  return fails(kDescriptor) ? -1 : (int)syscall(SYS_accept4, fd, address, size, flags);
}
int eventfd(unsigned int value, int flags) { return fails(kDescriptor) ? -1 : (int)syscall(SYS_eventfd2, value, flags); }
int epoll_create1(int flags) { return fails(kDescriptor) ? -1 : (int)syscall(SYS_epoll_create1, flags); }
int timerfd_create(int clock, int flags) {
  return fails(kDescriptor) ? -1 : (int)syscall(SYS_timerfd_create, clock, flags);
}
int memfd_create(const char* name, unsigned int flags) {
  return fails(kDescriptor) ? -1 : (int)syscall(SYS_memfd_create, name, flags);
}
int dup(int fd) { return fails(kDescriptor) ? -1 : (int)syscall(SYS_dup, fd); }
int dup3(int from, int to, int flags) { return fails(kDescriptor) ? -1 : (int)syscall(SYS_dup3, from, to, flags); }

/* ---- processes and threads ---- */

typedef pid_t Fork(void);
pid_t fork(void) {
  static Fork* next;
  if (next == NULL) next = (Fork*)dlsym(RTLD_NEXT, "fork");
  return fails(kFork) ? -1 : next();
}
typedef int Create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) {
  static Create* next;
  if (next == NULL) next = (Create*)dlsym(RTLD_NEXT, "pthread_create");
  return fails(kThread) ? (int)state->error : next(thread, attributes, start, argument);
}

/* ---- start ---- */

typedef int Main(int, char**, char**);
static Main* real_main;

static int counted_main(int argc, char** argv, char** environment) {
  const char* path = getenv("INJECT_STATE");
  const char* name = strrchr(argv[0], '/');
  name = name == NULL ? argv[0] : name + 1;
  if (path != NULL && strstr(name, "batchfs") != NULL) {
    const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    const int protection = PROT_READ | PROT_WRITE;
    void* map = fd < 0 ? MAP_FAILED
                       : (void*)syscall(SYS_mmap, NULL, sizeof(struct State), protection, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) abort();
    syscall(SYS_close, fd);
    trace_path = getenv("INJECT_TRACE");
    places_path = getenv("INJECT_PLACES");
    const char* caller = getenv("INJECT_CALLER");
    if (caller != NULL) {
      dl_iterate_phdr(note_caller, (void*)caller);
      if (caller_count == 0) {
        fprintf(stderr, "inject.so: no library has '%s' in its path\n", caller);
        abort();
      }
    }
    void* frame;
    backtrace(&frame, 1); /* loads what it needs before calls count */
    if (trace_path != NULL) {
      signal(SIGABRT, on_crash);
      signal(SIGSEGV, on_crash);
    }
    state = map;
  }
  return real_main(argc, argv, environment);
}

typedef int Start(Main*, int, char**, void (*)(void), void (*)(void), void (*)(void), void*);
int __libc_start_main(Main* main, int argc, char** argv, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void* stack_end) {
  Start* next = (Start*)dlsym(RTLD_NEXT, "__libc_start_main");
  real_main = main;
  return next(counted_main, argc, argv, init, fini, rtld_fini, stack_end);
}
