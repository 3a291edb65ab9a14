// Messages from a hand-off server to a reader, each after a number of descriptors (one byte) and
// its length (two). The very first descriptor is of the texts that describe a view, with its
// coordinate; the others are of memory of one page.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/base/descriptor_passing.h"
#include "gpu/reader/labels.h"
#include "gpu/reader/socket_source.h"
#include "tests/fuzz/fuzz.h"

namespace {

constexpr std::string_view kSchema =
    R"({"view": "v", "samples": 40, "batches": 10, "batch_size": 4, "epochs": 2, "formats": ["npy"],
        "tensors": [{"name": "v", "dtype": "int32", "shape": [4, 1, 6], "dims": ["sample", "time", "x"]}],
        "window": [{"dim": "time", "size": 1}, {"dim": "x", "size": 6, "positions": {"first": 2, "step": 3, "size": 7}}],
        "coordinates": [{"name": "time", "dims": ["time"], "dtype": "datetime64[s]", "size": 40}]})";
constexpr std::string_view kView = R"({"batch": {"size": 4, "remainder": "keep"}})";

int memory_of(std::string_view text, std::size_t size) {
  const int fd = ::memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (::ftruncate(fd, static_cast<off_t>(size)) != 0) __builtin_trap();
  if (!text.empty() && ::pwrite(fd, text.data(), text.size(), 0) < 0) __builtin_trap();
  ::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
  return fd;
}

/// The texts, followed by the coordinate.
std::string texts_of_view() {
  std::string texts = std::string(kSchema) + std::string(kView);
  texts.resize((texts.size() + 7) / 8 * 8);
  const batchfs::handoff::CoordinateRecord record{sizeof record, 40 * 8};
  texts.append(reinterpret_cast<const char*>(&record), sizeof record);
  for (std::int64_t i = 0; i < 40; ++i) texts.append(reinterpret_cast<const char*>(&i), sizeof i);
  return texts;
}

/// Any Error is valid, also "internal": the server may report that of itself.
template <class Body>
bool tried(Body&& body) {
  try {
    body();
    return true;
  } catch (const batchfs::Error&) {
    return false;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace batchfs;
  using namespace batchfs::reader;
  static const int texts = memory_of(texts_of_view(), texts_of_view().size());
  static const int page = memory_of({}, 4096);
  int ends[2];
  must(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
  Input input(data, size);
  bool first = true;
  for (int messages = 0; !input.empty() && messages < 50; ++messages) {
    std::vector<int> descriptors(input.number<std::uint8_t>() % 4, page);
    if (!descriptors.empty() && std::exchange(first, false)) descriptors[0] = texts;
    const auto message = input.bytes(input.number<std::uint16_t>());
    if (!message.empty()) batchfs::send_passing(ends[1], message, descriptors, MSG_DONTWAIT);
  }
  ::shutdown(ends[1], SHUT_WR);
  const Interrupted never_waits = [] { return true; };
  tried([&] {
    try {
      SocketSource source(ends[0], {.view = "v"}, never_waits);
      source.start({0, 0, 1, 10}, 4);
      std::vector<std::shared_ptr<Batch>> kept;
      for (int i = 0; i < 40; ++i) {
        std::shared_ptr<Batch> batch;
        if (!tried([&] { batch = source.next(never_waits); })) continue;
        if (batch == nullptr) break;
        for (const Tensor& tensor : batch->tensors) {
          unsigned sum = 0;
          for (std::uint64_t at = 0; at < tensor.bytes; ++at)
            sum += static_cast<unsigned>(tensor.data[at]);
          must(sum == 0);
        }
        for (const char* dim : {"time", "x", "y"})
          for (const std::int64_t sample : {INT64_C(0), batch->samples - 1})
            tried([&] { label_of(*batch, sample, dim); });
        if (i % 2 == 0) kept.push_back(std::move(batch));
      }
      tried([&] { source.get(0, 1, never_waits); });
    } catch (const Lost&) {
    }
  });
  ::close(ends[1]);
  return 0;
}
