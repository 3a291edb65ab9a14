// Messages from a reader to the hand-off server, each after its length of two bytes. One of five
// batches fails and one is never made; the others are ready at once.

#include <sys/socket.h>

#include "engine/view/order/order.h"
#include "gpu/handoff/connection.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/engine/pipeline/fake_store.h"

namespace batchfs::handoff {
namespace {

class MadeUpDelivery final : public Delivery {
 public:
  MadeUpDelivery()
      : memory_(std::make_shared<MemoryFile>(MemoryFiles(false).create("fuzz", 4096))) {}
  Mode mode() const override { return Mode::shm; }
  bool serves(const HelloMessage& hello) const override {
    return (hello.kinds & bit(MemoryKind::host)) != 0;
  }
  std::uint64_t open(BatchRequest request, Order, Done done) override {
    must(request.batch >= 0 && request.epoch >= 0);
    const std::uint64_t id = ++last_id_;
    if (id % 5 == 4) {
      waiting_[id] = std::move(done);
      return id;
    }
    if (id % 5 == 3) {
      done(nullptr, std::make_exception_ptr(Error(ErrorCode::corrupt, "made up", "v/0")));
      return 0;
    }
    auto delivered = std::make_shared<DeliveredBatch>();
    delivered->memories = {{id, 4096, MemoryKind::host, memory_->fd(), true}};
    delivered->tensors = {{0, 0, bytes(*request.view, request.global_batch())}};
    delivered->held = memory_;
    done(delivered, nullptr);
    return 0;
  }
  void cancel(std::uint64_t opened) override {
    const auto it = waiting_.find(opened);
    if (it == waiting_.end()) return;
    const Done done = std::move(it->second);
    waiting_.erase(it);
    done(nullptr, std::make_exception_ptr(Error(ErrorCode::interrupted, "cancelled")));
  }
  std::uint64_t bytes(const View& view, std::int64_t batch) const override {
    return static_cast<std::uint64_t>(element_count(view.shapes(batch)[0])) * 4;
  }
  std::uint64_t limit() const override { return 1024; }

  /// Resets for the next input, which must not depend on this one. Returns whether no request is
  /// pending.
  bool start_anew() {
    last_id_ = 0;
    return waiting_.empty();
  }

 private:
  const std::shared_ptr<MemoryFile> memory_;
  std::map<std::uint64_t, Done> waiting_;
  std::uint64_t last_id_ = 0;
};

}  // namespace
}  // namespace batchfs::handoff

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace batchfs;
  using namespace batchfs::handoff;
  static const FakeData fake(10, 4, 6);
  static MadeUpDelivery delivery;
  static ServerContext context = [] {
    ServerContext made;
    const auto add = [&](const char* json, Remainder remainder) {
      made.views.push_back(
          std::make_shared<const SharedView>(SharedView{fake.view(json), remainder}));
    };
    add(R"({"name": "v", "window": {"time": 1}, "batch": 4, "epochs": 2})", Remainder::keep);
    add(R"({"name": "p", "window": {"time": 1}, "batch": {"size": 3, "remainder": "pad"}})",
        Remainder::pad);
    made.deliveries = {&delivery};
    return made;
  }();
  int ends[2];
  must(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
  {
    std::vector<Completion> completions;
    const auto share = std::make_shared<ProcessShare>(1 << 16);
    Connection connection(1, ends[0], context, share, [&](Completion completion) {
      completions.push_back(std::move(completion));
    });
    Input input(data, size);
    const auto drain = [&] {
      std::byte answer[kMaxMessage];
      while (::recv(ends[1], answer, sizeof answer, 0) > 0) {
      }
    };
    for (int messages = 0; !input.empty() && messages < 200; ++messages) {
      const auto message = input.bytes(input.number<std::uint16_t>());
      if (message.empty()) continue;
      ::send(ends[1], message.data(), message.size(), MSG_NOSIGNAL);
      bool goes_on = connection.readable();
      while (goes_on && !completions.empty()) {
        Completion completion = std::move(completions.back());
        completions.pop_back();
        goes_on = connection.completed(std::move(completion));
      }
      drain();
      if (!goes_on || !connection.writable()) break;
    }
  }
  ::close(ends[1]);
  must(context.held == 0 && context.leases == 0 && delivery.start_anew());
  return 0;
}
