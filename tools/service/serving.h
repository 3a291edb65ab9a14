#pragma once
// Common parts of `mount` and `serve`: both open a store, resolve views and hand batches over.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/log.h"
#include "engine/pipeline/engine.h"
#include "gpu/handoff/device_delivery.h"
#include "gpu/handoff/reader_delivery.h"
#include "gpu/handoff/server.h"
#include "tools/cli/store_options.h"
#include "tools/cli/view_options.h"

namespace batchfs {

/// Seconds that reads of the store may take to end with a mount or a server.
inline constexpr double kStopTimeout = 10;

/// Makes relative paths absolute: a daemon has no working directory.
std::string absolute_store(const std::string& store);

/// The store's chosen group as a dataset. Arrays whose dimensions do not fit together do not
/// prevent a mount: it shows them, without describing how they belong together.
std::shared_ptr<const Dataset> described_dataset(const OpenedStore& opened, GroupDatasets& datasets,
                                                 Log& log);

/// Throws invalid_argument if two views have the same name, and no_memory if views keep more than
/// kFreeMetadata and half of --memory.
std::vector<std::shared_ptr<const View>> load_views(GroupDatasets& datasets,
                                                    const std::vector<std::string>& files,
                                                    const CheckFile& check_file = {},
                                                    const std::optional<StandardInput>& input = {});

/// For views whose batches are files. Throws no_memory if a batch, or the list of the parts of
/// chunks that the first is made of, is larger than the budget allows, so that no reader could ever
/// get it, and not_supported if a format cannot hold a tensor.
void check_files(const std::vector<std::shared_ptr<const View>>& views, const MemoryFiles& files,
                 std::uint64_t budget);
/// For views whose batches are only handed over. Throws no_memory.
void check_handed_over(const std::vector<std::shared_ptr<const View>>& views,
                       const handoff::Delivery& host);

/// Logs, in the words of `batchfs plan`, if making a batch of a view needs more memory than the
/// budget.
void warn_of_memory(const std::vector<std::shared_ptr<const View>>& views, std::uint64_t budget,
                    Log& log);

/// Logs a view's warnings about its samples: windows that reach across missing dates.
void warn_of_samples(const std::vector<std::shared_ptr<const View>>& views, Log& log);

/// Does anyone read the daemon's standard error: a terminal in the foreground, or the system's
/// journal?
bool is_stderr_read(bool foreground);

struct TimeOptions {   // seconds
  double wait = 600;   // how long readers wait
  double idle = 300;   // how long memory is kept for readers that may come
  double refresh = 0;  // how often the store is read again; 0: when asked
};
void add_time_options(CLI::App& app, TimeOptions& options);
/// Adds --refresh.
void add_refresh_option(CLI::App& app, TimeOptions& options);

/// Each batch that a reader holds is an open file: raises the limit as far as the system allows.
void raise_file_limit();

struct GpuOptions {
  std::string gpu = "auto";  // auto, off, or a number
  std::uint64_t memory = 0;  // bytes of each GPU; 0: a quarter of what it has, at most 24 GiB
};
void add_gpu_options(CLI::App& app, GpuOptions& options);

/// The deliveries of batches in GPU memory: one for readers that decode in their own process, and
/// one for each GPU here.
class GpuDeliveries {
 public:
  /// Throws not_supported if a GPU is requested by number and does not exist, or this build has no
  /// kernel for it; when all are used, such a GPU is left out with a warning. `engine`, `host` and
  /// `log` outlive it.
  GpuDeliveries(const GpuOptions& options, Engine& engine, handoff::Delivery& host, Log& log);

  /// The deliveries in order of preference.
  std::vector<handoff::Delivery*> before(handoff::Delivery& host) const;
  /// GPUs here that this build has no kernel for.
  const std::vector<handoff::UnsupportedGpu>& unsupported() const { return unsupported_; }
  Json json() const;
  /// State of the delivery for readers that decode in their own process.
  Json readers_json() const;

 private:
  struct Gpu {
    int number;
    std::string name;
    std::uint64_t memory;
    std::unique_ptr<handoff::DeviceDelivery> delivery;
  };
  handoff::ReaderDelivery readers_;
  std::vector<Gpu> gpus_;
  std::vector<handoff::UnsupportedGpu> unsupported_;
};

/// The hand-off's state in status.json.
Json handoff_json(const handoff::HandoffServer& server, const GpuDeliveries& gpus);

}  // namespace batchfs
