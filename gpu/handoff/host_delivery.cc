#include "gpu/handoff/host_delivery.h"

#include "engine/view/order/order.h"
#include "gpu/handoff/packed_format.h"

namespace batchfs::handoff {

std::uint64_t HostDelivery::open(BatchRequest request, Order, Done done) {
  constexpr std::uint64_t kSpareShare = 8;
  engine_.memory_files().keep_spares(limit() / kSpareShare);
  request.format = &packed_format();
  const std::shared_ptr<const View> view = request.view;
  const std::int64_t number = request.global_batch();
  return engine_.open(
      request, [&engine = engine_, last_id = last_id_, view, number, done = std::move(done)](
                   std::shared_ptr<const batchfs::Batch> batch, std::exception_ptr error) {
        if (error) return done(nullptr, error);
        const BatchLayout layout = packed_format().layout(*view, number);
        const std::vector<Dims> shapes = view->shapes(number);
        auto delivered = std::make_shared<DeliveredBatch>();
        const MemoryFile& file = batch->files[0];
        delivered->memories.push_back({++*last_id, file.size(), MemoryKind::host, file.fd(), true});
        for (std::size_t t = 0; t < shapes.size(); ++t)
          delivered->tensors.push_back({0, layout.tensors[t].offset,
                                        static_cast<std::uint64_t>(element_count(shapes[t])) *
                                            view->tensors()[t].type.itemsize});
        if (batch->files.size() > 1) delivered->windows = &batch->files[1];
        engine.counters().bytes_delivered += file.size();
        delivered->held = std::move(batch);
        done(std::move(delivered), nullptr);
      });
}

std::uint64_t HostDelivery::bytes(const View& view, std::int64_t batch) const {
  std::uint64_t bytes = 0;
  for (const BatchLayout::File& file : packed_format().layout(view, batch).files)
    bytes += engine_.memory_files().memory_of(file.size);
  return bytes;
}

}  // namespace batchfs::handoff
