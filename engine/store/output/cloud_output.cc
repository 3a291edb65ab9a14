#include "engine/store/output/cloud_output.h"

#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/store/cloud/object_requests.h"
#include "engine/store/cloud/s3.h"
#include "engine/store/store_environment.h"

namespace batchfs {

namespace {

constexpr std::uint64_t kMaxPut = UINT64_C(5) << 30;  // S3's, of one request
constexpr double kMinRate = 256 << 10;                // bytes per second of a put that is alive
constexpr int kMaxPages = 1000;                       // of the listing of working files

class NoLock final : public OutputStore::Lock {};

class CloudOutput final : public OutputStore {
 public:
  CloudOutput(std::shared_ptr<ObjectService> service, std::shared_ptr<HttpClient> client,
              const StoreConfig& config)
      : service_(service),
        timeout_(config.timeout),
        requests_(std::move(service), std::move(client), request_options(config)) {}

  std::string url() const override { return service_->url(); }
  bool is_local() const override { return false; }

  void put(const std::string& key, std::span<const std::span<const std::byte>> parts) override {
    check_key(key);
    std::uint64_t size = 0;
    for (const std::span<const std::byte>& part : parts) size += part.size();
    if (size > kMaxPut)
      throw Error(ErrorCode::not_supported,
                  fmt::format("an object has {}; at most {} are put at once: choose smaller shards",
                              format_size(size), format_size(kMaxPut)),
                  key);
    const auto build = [&] {
      HttpRequest request = service_->get(key);
      request.method = "PUT";
      request.body.reserve(size);
      for (const std::span<const std::byte>& part : parts)
        request.body.append(reinterpret_cast<const char*>(part.data()), part.size());
      request.headers.emplace_back("Content-Type", "application/octet-stream");
      request.headers.emplace_back("Expect", "");  // else a server may be waited for
      // No answer comes while the body is sent.
      request.timeout = timeout_ + static_cast<double>(size) / kMinRate;
      return request;
    };
    change(key, build);
  }

  std::optional<Buffer> get(const std::string& key) override {
    check_key(key);
    auto response = send(key, [&] { return service_->get(key); });
    if (!response) return std::nullopt;
    return std::move(response->body);
  }

  void read_part(const std::string& key, std::uint64_t, std::span<std::byte>) override {
    throw Error(ErrorCode::internal, "pieces are kept in local folders", key);
  }

  bool is_empty() override {
    for (const Store::Entry& entry : list(""))
      if (entry.name != kWorkingFolder) return false;
    return true;
  }

  void discard_working_files() override {
    const std::string folder(kWorkingFolder);
    for (const Store::Entry& entry : list(folder)) {
      const std::string key = folder + "/" + entry.name;
      change(key, [&] {
        HttpRequest request = service_->get(key);
        request.method = "DELETE";
        return request;
      });
    }
  }

  std::unique_ptr<Lock> lock(const std::string&) override { return std::make_unique<NoLock>(); }

 private:
  template <class Build>
  std::optional<HttpResponse> send(const std::string& key, Build&& build) {
    return requests_.send_and_wait(
        {.build = build, .verify = [](const HttpResponse&) {}, .where = key});
  }

  /// A request that writes. What reading calls missing is refused here.
  template <class Build>
  void change(const std::string& key, Build&& build) {
    const Error refused(ErrorCode::access_denied, "the credentials may not write here",
                        service_->url());
    try {
      if (send(key, build)) return;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::access_denied &&
          error.why().find("may not read") != std::string::npos)
        throw refused;
      throw;
    }
    throw refused;
  }

  std::vector<Store::Entry> list(const std::string& prefix) {
    std::vector<Store::Entry> entries;
    std::string continuation;
    for (int pages = 0; pages < kMaxPages; ++pages) {
      const auto response = send(prefix, [&] { return service_->list(prefix, continuation); });
      if (!response) return entries;
      ObjectService::Page page = service_->parse_list(prefix, *response);
      std::move(page.entries.begin(), page.entries.end(), std::back_inserter(entries));
      continuation = std::move(page.continuation);
      if (continuation.empty()) break;
    }
    return entries;
  }

  const std::shared_ptr<ObjectService> service_;
  const double timeout_;
  ObjectRequests requests_;
};

}  // namespace

std::shared_ptr<OutputStore> open_s3_output(const std::string& url, const StoreConfig& config) {
  auto client = std::make_shared<HttpClient>(HttpClient::Options{.timeout = config.timeout});
  auto service = make_s3_service(url, config, process_environment(client));
  return std::make_shared<CloudOutput>(std::move(service), std::move(client), config);
}

}  // namespace batchfs
