// The bound of reading chunks on a CPU: the decompression library alone.
//
//   bench_bare raw|blosc|zstd THREADS CHUNK_BYTES < LIST_OF_FILES
//
// Each thread reads the next file of the list into its own memory and decompresses it into other
// memory of its own, always the same. Prints the decoded bytes and the seconds.

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include <blosc.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

namespace {

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "bench_bare: %s\n", what.c_str());
  std::exit(1);
}

std::size_t read_file(const std::string& path, std::vector<char>& into) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info {};
  if (fd < 0 || ::fstat(fd, &info) != 0) fail(path + ": cannot be opened");
  const auto size = static_cast<std::size_t>(info.st_size);
  if (into.size() < size) into.resize(size);
  for (std::size_t done = 0; done < size;) {
    const ssize_t got = ::read(fd, into.data() + done, size - done);
    if (got <= 0) fail(path + ": cannot be read");
    done += static_cast<std::size_t>(got);
  }
  ::close(fd);
  return size;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) fail("usage: bench_bare raw|blosc|zstd THREADS CHUNK_BYTES < LIST_OF_FILES");
  const std::string codec = arguments[1];
  const int threads = std::atoi(arguments[2]);
  const auto chunk_bytes = static_cast<std::size_t>(std::atoll(arguments[3]));
  std::vector<std::string> files;
  for (std::string line; std::getline(std::cin, line);) files.push_back(line);

  std::atomic<std::size_t> next{0}, decoded{0};
  auto work = [&] {
    std::vector<char> stored(chunk_bytes), chunk(chunk_bytes);
    ZSTD_DCtx* context = ZSTD_createDCtx();
    for (std::size_t i; (i = next++) < files.size();) {
      const std::size_t size = read_file(files[i], stored);
      std::size_t got = size;
      if (codec == "zstd") {
        got = ZSTD_decompressDCtx(context, chunk.data(), chunk.size(), stored.data(), size);
        if (ZSTD_isError(got)) fail(files[i] + ": " + ZSTD_getErrorName(got));
      } else if (codec == "blosc") {
        const int result = blosc_decompress_ctx(stored.data(), chunk.data(), chunk.size(), 1);
        if (result <= 0) fail(files[i] + ": blosc failed");
        got = static_cast<std::size_t>(result);
      }
      decoded += got;
    }
    ZSTD_freeDCtx(context);
  };
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::thread> pool;
  for (int i = 0; i < threads; ++i) pool.emplace_back(work);
  for (std::thread& thread : pool) thread.join();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::printf("%zu %.6f\n", decoded.load(), seconds.count());
}
