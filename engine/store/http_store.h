#pragma once
// A plain web server as a store. It cannot be listed, so the store's metadata must be consolidated, or be
// that of a single array.

#include <memory>
#include <string>

#include "engine/store/object_service.h"
#include "engine/store/store.h"

namespace batchfs {

/// `url` is http:// or https://. User and password in it are sent as basic authentication; its query (a
/// signature, say) is sent with every request.
class HttpService : public ObjectService {
 public:
  explicit HttpService(const std::string& url);

  std::string url() const override { return shown_; }
  HttpRequest get(const std::string& key) override;
  HttpRequest head(const std::string& key) override;
  bool can_list() const override { return false; }
  HttpRequest list(const std::string& prefix, const std::string& continuation) override;
  Page parse_list(const std::string& prefix, const HttpResponse& response) override;
  void authorize(HttpRequest& request) override;

 private:
  std::string shown_;          // without secrets, no trailing slash
  std::string query_;          // with its '?'; empty: none
  std::string authorization_;  // the header's value; empty: none
};

/// Throws invalid_argument. Connects when something is read.
std::shared_ptr<Store> open_http_store(const std::string& url, const StoreConfig& config);

}  // namespace batchfs
