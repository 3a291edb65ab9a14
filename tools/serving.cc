#include "tools/serving.h"

#include <filesystem>
#include <set>

#include <sys/resource.h>

namespace batchfs {

std::string absolute_store(const std::string& store) {
  return store.find("://") == std::string::npos ? std::filesystem::absolute(store).lexically_normal().string()
                                                : store;
}

std::vector<std::shared_ptr<const View>> load_views(const std::shared_ptr<const Dataset>& dataset,
                                                    const std::vector<std::string>& files) {
  std::vector<std::shared_ptr<const View>> views;
  std::set<std::string> names;
  for (const std::string& file : files) {
    views.push_back(load_view(dataset, file));
    if (!names.insert(views.back()->name()).second) {
      throw Error(ErrorCode::invalid_argument,
                  "two views have the name '" + views.back()->name() + "'; give one another \"name\"", file);
    }
  }
  return views;
}

std::shared_ptr<const Dataset> open_dataset(const OpenedStore& opened, bool has_views, Log& log) {
  try {
    return std::make_shared<const Dataset>(opened.store, *opened.hierarchy);
  } catch (const Error& error) {
    if (has_views) throw;
    log.warning(std::string("the arrays make no dataset, views of them are not possible: ") + error.what());
    return std::make_shared<const Dataset>(opened.store, Hierarchy{});
  }
}

void raise_file_limit() {
  rlimit limit;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);  // where it is refused, the limit is what it was
}

Json handoff_json(const handoff::HandoffServer& server) {
  const auto now = server.statistics();
  return {{"socket", server.path()}, {"readers", now.readers}, {"leases", now.leases},
          {"memory_bytes", now.bytes}, {"batches", now.delivered}};
}

}  // namespace batchfs
