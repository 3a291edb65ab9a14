#pragma once
// An object of each thread, made when the thread first asks for it and destroyed when the thread
// ends.
//
// Like thread_local, except that lack of memory throws: the C library aborts when it cannot
// register the destructor of a thread_local object. And construction that threw is tried again on
// the next use.

#include <memory>
#include <new>

#include <pthread.h>

namespace batchfs {

/// Meant for static storage: it lives as long as the process. Thread-safe.
template <class T>
class PerThread {
 public:
  PerThread() {
    if (::pthread_key_create(&key_, [](void* own) { delete static_cast<T*>(own); }) != 0)
      throw std::bad_alloc();
  }
  PerThread(const PerThread&) = delete;
  PerThread& operator=(const PerThread&) = delete;

  /// Returns the calling thread's object. Throws what T's constructor throws, or std::bad_alloc.
  T& get() {
    if (void* own = ::pthread_getspecific(key_)) return *static_cast<T*>(own);
    auto made = std::make_unique<T>();
    if (::pthread_setspecific(key_, made.get()) != 0) throw std::bad_alloc();
    return *made.release();
  }

 private:
  pthread_key_t key_;
};

}  // namespace batchfs
