#include "engine/store/cloud/writable_service.h"

namespace batchfs {

namespace {

Error no_parts() { return Error(ErrorCode::internal, "the service takes no parts of objects"); }

}  // namespace

HttpRequest WritableService::remove(const std::string& key) {
  HttpRequest made = get(key);
  made.method = "DELETE";
  return made;
}

std::optional<HttpRequest> WritableService::begin_parts(const std::string&) { return std::nullopt; }

std::string WritableService::upload_name(const HttpResponse&) const { return {}; }

HttpRequest WritableService::put_part(const std::string&, const std::string&, std::uint64_t,
                                      std::string) {
  throw no_parts();
}

std::string WritableService::part_name(const HttpResponse&, std::uint64_t) const {
  throw no_parts();
}

HttpRequest WritableService::join_parts(const std::string&, const std::string&,
                                        const std::vector<std::string>&) {
  throw no_parts();
}

void WritableService::check_joined(const HttpResponse&) const {}

std::optional<HttpRequest> WritableService::drop_parts(const std::string&, const std::string&) {
  return std::nullopt;
}

}  // namespace batchfs
