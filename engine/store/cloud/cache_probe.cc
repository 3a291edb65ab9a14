#include "engine/store/cloud/cache_probe.h"

#include <algorithm>

#include "engine/store/cloud/cache_access.h"
#include "engine/store/cloud/cloud_store.h"
#include "engine/store/http/http_transfer.h"
#include "engine/store/http/response_checks.h"
#include "engine/store/place.h"
#include "engine/store/uri.h"

namespace batchfs {

namespace {

bool same_bytes(const Buffer& a, const Buffer& b) {
  return std::equal(a.span().begin(), a.span().end(), b.span().begin(), b.span().end());
}

HttpRequest signed_request(ObjectService& service, const std::string& key) {
  HttpRequest request = service.get(key);
  request.largest_body = 16 << 20;
  service.authorize(request);
  return request;
}

/// The store's own answer for the first of the objects that most stores have.
std::optional<HttpResponse> ask_store(ObjectService& service, HttpClient& client,
                                      std::string& key) {
  for (const char* name : {"zarr.json", ".zmetadata", ".zgroup", ".zarray", "repo"}) {
    HttpResponse response = client.send_and_wait(signed_request(service, name));
    if (service.classify(response).kind != Verdict::ok) continue;
    key = name;
    return response;
  }
  return std::nullopt;
}

}  // namespace

std::vector<CacheProbe> probe_caches(const std::string& typed, const StoreConfig& config) {
  std::vector<CacheProbe> probes;
  const std::string place = split_kind(usual_place(typed)).place;
  const std::size_t colon = place.find("://");
  if (colon == std::string::npos || place.starts_with("file://")) return probes;
  auto client = std::make_shared<HttpClient>(HttpClient::Options{.timeout = config.timeout});
  const StoreEnvironment environment = process_environment(client);
  const auto service = make_object_service(place, config, client, environment);
  const auto caches = shared_caches(config, *service, environment);
  if (caches == nullptr) return probes;
  std::string key;
  const std::optional<HttpResponse> direct = ask_store(*service, *client, key);
  for (std::size_t i = 0; i < caches->size(); ++i) {
    CacheProbe probe{.cache = caches->url(i), .object = key};
    for (int time = 0; direct && time < 2; ++time) {
      HttpRequest request = signed_request(*service, key);
      request.gateway = caches->gateway(i);
      probe.server = parse_uri(request.url).authority();
      const std::int64_t began = steady_now();
      try {
        const HttpResponse answer = caches->client().send_and_wait(std::move(request));
        probe.seconds = static_cast<double>(steady_now() - began) * 1e-9;
        probe.status = answer.status;
        probe.hit = says_hit(answer.headers);
        probe.has_version = !version_of(*direct).empty();
        const std::string version = version_of(answer);
        probe.is_same = same_bytes(answer.body, direct->body) && version == version_of(*direct);
        probe.is_older = !probe.is_same && !version.empty();
      } catch (const Error& error) {
        probe.status = 0;
        probe.error = error.why();
        break;
      }
    }
    probes.push_back(std::move(probe));
  }
  return probes;
}

}  // namespace batchfs
