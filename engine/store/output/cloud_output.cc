#include "engine/store/output/cloud_output.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/store/cloud/cloud_store.h"
#include "engine/store/cloud/object_requests.h"
#include "engine/store/cloud/writable_service.h"
#include "engine/store/store_environment.h"

namespace batchfs {

namespace {

constexpr double kMinRate = 256 << 10;  // bytes per second of a put that is alive
constexpr int kMaxPages = 1000;         // of the listing of working files

class NoLock final : public OutputStore::Lock {};

using Parts = std::span<const std::span<const std::byte>>;

/// `size` bytes from `offset` of the concatenated parts.
std::string cut(Parts parts, std::uint64_t offset, std::uint64_t size) {
  std::string bytes;
  bytes.reserve(size);
  for (const std::span<const std::byte>& part : parts) {
    if (offset >= part.size()) {
      offset -= part.size();
      continue;
    }
    const auto from = part.subspan(offset, std::min(size - bytes.size(), part.size() - offset));
    bytes.append(reinterpret_cast<const char*>(from.data()), from.size());
    offset = 0;
    if (bytes.size() == size) break;
  }
  return bytes;
}

class CloudOutput final : public OutputStore {
 public:
  CloudOutput(std::shared_ptr<WritableService> service, std::shared_ptr<HttpClient> client,
              const StoreConfig& config)
      : service_(service),
        timeout_(config.timeout),
        requests_(std::move(service), std::move(client), request_options(config)) {}

  std::string url() const override { return service_->url(); }
  bool is_local() const override { return false; }

  void put(const std::string& key, Parts parts) override {
    check_key(key);
    std::uint64_t size = 0;
    for (const std::span<const std::byte>& part : parts) size += part.size();
    const WritableService::WriteLimits limits = service_->write_limits();
    if (size <= limits.largest_put) {
      change(key, [&] { return with_body(service_->put(key, cut(parts, 0, size))); });
      return;
    }
    if (size > limits.part * limits.parts)
      throw Error(
          ErrorCode::not_supported,
          fmt::format("an object has {}; the service takes at most {}: choose smaller shards",
                      format_size(size),
                      format_size(std::max(limits.largest_put, limits.part * limits.parts))),
          key);
    put_parts(key, parts, size, limits.part);
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
      // Another task may have removed it meanwhile.
      send_change(key, [&] { return with_body(service_->remove(key)); });
    }
  }

  std::unique_ptr<Lock> lock(const std::string&) override { return std::make_unique<NoLock>(); }

 private:
  template <class Build>
  std::optional<HttpResponse> send(const std::string& key, Build&& build) {
    return requests_.send_and_wait(
        {.build = build, .verify = [](const HttpResponse&) {}, .where = key});
  }

  /// An object that is made of parts, or nothing: readers see it once they are joined.
  void put_parts(const std::string& key, Parts parts, std::uint64_t size, std::uint64_t part_size) {
    std::string upload;
    if (service_->begin_parts(key))
      upload = service_->upload_name(
          change(key, [&] { return with_body(*service_->begin_parts(key)); }));
    try {
      std::vector<std::string> names;
      for (std::uint64_t offset = 0; offset < size; offset += part_size) {
        const std::uint64_t number = names.size(), length = std::min(part_size, size - offset);
        const HttpResponse answer = change(key, [&] {
          return with_body(service_->put_part(key, upload, number, cut(parts, offset, length)));
        });
        names.push_back(service_->part_name(answer, number));
      }
      join(key, upload, names, size);
    } catch (const std::exception&) {
      drop(key, upload);
      throw;
    }
  }

  void join(const std::string& key, const std::string& upload,
            const std::vector<std::string>& names, std::uint64_t size) {
    const auto joined = send_change(
        key,
        [&] {
          HttpRequest request = with_body(service_->join_parts(key, upload, names));
          request.timeout = timeout_ + static_cast<double>(size) / kMinRate;
          return request;
        },
        [this](const HttpResponse& response) { service_->check_joined(response); });
    if (joined) return;
    // An attempt whose answer was lost may have joined them, and the upload no longer exists.
    const auto found = send(key, [&] { return service_->head(key); });
    const std::string* length = found ? find_header(found->headers, "content-length") : nullptr;
    if (length == nullptr || parse_exact_number(*length) != size)
      throw Error(ErrorCode::io, "the server lost the parts of the object; run the command again",
                  key);
  }

  /// Abandoned parts cost the owner of the bucket. The caller reports the failure before this one.
  void drop(const std::string& key, const std::string& upload) {
    try {
      if (service_->drop_parts(key, upload))
        send_change(key, [&] { return with_body(*service_->drop_parts(key, upload)); });
    } catch (const Error&) {
    }
  }

  HttpRequest with_body(HttpRequest request) const {
    request.headers.emplace_back("Content-Type", "application/octet-stream");
    request.headers.emplace_back("Expect", "");  // else a server may be waited for
    // No answer comes while the body is sent.
    request.timeout = timeout_ + static_cast<double>(request.body.size()) / kMinRate;
    return request;
  }

  /// A request that writes. An answer that means "missing" to reads is refused here.
  template <class Build>
  HttpResponse change(const std::string& key, Build&& build) {
    auto response = send_change(key, build);
    if (!response) throw refused();
    return std::move(*response);
  }

  /// nullopt: missing.
  template <class Build>
  std::optional<HttpResponse> send_change(
      const std::string& key, Build&& build,
      std::function<void(const HttpResponse&)> verify = [](const HttpResponse&) {}) {
    try {
      return requests_.send_and_wait({.build = build, .verify = std::move(verify), .where = key});
    } catch (const Error& error) {
      if (error.code() == ErrorCode::access_denied &&
          error.why().find("may not read") != std::string::npos)
        throw refused();
      throw;
    }
  }

  Error refused() const {
    return Error(ErrorCode::access_denied, "the credentials may not write here", service_->url());
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

  const std::shared_ptr<WritableService> service_;
  const double timeout_;
  ObjectRequests requests_;
};

}  // namespace

std::shared_ptr<OutputStore> open_cloud_output(const std::string& url, const StoreConfig& config) {
  auto client = std::make_shared<HttpClient>(HttpClient::Options{.timeout = config.timeout});
  auto service = make_writable_service(url, config, process_environment(client));
  return std::make_shared<CloudOutput>(std::move(service), std::move(client), config);
}

}  // namespace batchfs
