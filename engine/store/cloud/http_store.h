#pragma once
// A plain web server as a store. It cannot be listed, so the store's metadata must be consolidated,
// or be that of a single array.
//
// Object storage that is read by its web address answers 403 for missing objects. That is taken for
// missing only if it is sure to be the storage's answer: the body is its error document, the same
// comes for an object that cannot exist, something could be read before, and nothing was sent that
// can expire (a signature, a password), since without it everything would be missing. Or if the
// user has set this.

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "engine/store/cloud/object_service.h"
#include "engine/store/store.h"
#include "engine/store/virtual/address_queries.h"

namespace batchfs {

/// `url` is http:// or https://. User and password in it are sent as basic authentication; its
/// query (a signature, say) is sent with every request, in place of a key's own.
class HttpService : public ObjectService {
 public:
  struct Options {
    MissingAnswers missing = MissingAnswers::find_out;
    bool redirects = true;                          // see StoreConfig
    bool revalidate = false;                        // see StoreConfig
    std::shared_ptr<const AddressQueries> queries;  // of keys that stand for them; may be null
  };
  HttpService(const std::string& url, std::shared_ptr<HttpClient> client)
      : HttpService(url, std::move(client), Options()) {}
  HttpService(const std::string& url, std::shared_ptr<HttpClient> client, Options options);

  std::string url() const override { return shown_; }
  Credentials credentials_kind() const override {
    return query_.empty() && authorization_.empty() ? Credentials::harmless : Credentials::secret;
  }
  bool names_versions_once() const override { return false; }
  HttpRequest get(const std::string& key) override;
  HttpRequest head(const std::string& key) override;
  bool can_list() const override { return false; }
  HttpRequest list(const std::string& prefix, const std::string& continuation) override;
  Page parse_list(const std::string& prefix, const HttpResponse& response) override;
  void authorize(HttpRequest& request) override;
  Verdict classify(const HttpResponse& response) override;

 private:
  enum class Forbidden { unknown, to_be_found_out, is_missing, is_denied };
  void find_out();

  const std::shared_ptr<HttpClient> client_;
  const Options options_;
  std::string shown_;          // without secrets, no trailing slash
  std::string query_;          // with its '?'; empty: none
  std::string authorization_;  // the header's value; empty: none
  std::atomic<bool> has_read_{false};
  std::atomic<Forbidden> forbidden_{Forbidden::unknown};
  std::mutex finding_out_;
};

/// Throws invalid_argument. Connects when something is read.
std::shared_ptr<Store> open_http_store(const std::string& url, const StoreConfig& config);

}  // namespace batchfs
