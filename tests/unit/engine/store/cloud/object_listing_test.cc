#include "engine/store/cloud/object_listing.h"

#include "tests/unit/engine/store/cloud/object_server.h"

namespace batchfs {

namespace object_listing_test {

/// Lists lines of "name" and "name/" with the next page's number first.
class ListingService : public HttpService {
 public:
  using HttpService::HttpService;
  bool can_list() const override { return true; }
  HttpRequest list(const std::string& prefix, const std::string& continuation) override {
    return get("list/" + (prefix.empty() ? "root" : prefix) + continuation);
  }
  Page parse_list(const std::string&, const HttpResponse& response) override {
    Page page;
    std::string line;
    for (const std::byte byte : response.body.span()) {
      if (static_cast<char>(byte) != '\n') {
        line += static_cast<char>(byte);
      } else if (page.continuation.empty() && line.starts_with("next=")) {
        page.continuation = line.substr(5);
        line.clear();
      } else {
        const bool is_prefix = line.ends_with("/");
        if (is_prefix) line.pop_back();
        page.entries.push_back({std::exchange(line, {}), is_prefix});
      }
    }
    return page;
  }
};

TEST_F(ObjectStoreTest, ListsPageByPage) {
  there.objects["/list/root"] = "next=2\nzarr.json\nt2m/\n";
  there.objects["/list/root2"] = "a\nt2m/\nt2m\nbad/name\n\n";
  there.objects["/list/circle"] = "next=x\n";
  there.objects["/list/circlex"] = "next=x\n";
  there.fault = [](const Request&, int nth) -> std::optional<Answer> {
    return nth == 0 ? std::optional(Answer{.status = 503}) : std::nullopt;
  };
  const auto service = std::make_shared<ListingService>(there.server.url(), client);
  ObjectRequests requests(service, client, quick_options());
  const auto list = [&](const std::string& prefix) {
    return list_objects(*service, requests, prefix);
  };
  std::string names;
  for (const Store::Entry& entry : list("")) names += entry.name + (entry.is_prefix ? "/ " : " ");
  EXPECT_EQ(names, "a t2m/ zarr.json ");
  EXPECT_EQ(code_of([&] { list("circle"); }), ErrorCode::io);
  EXPECT_EQ(code_of([&] { list("none"); }), ErrorCode::not_found);
}

}  // namespace object_listing_test

}  // namespace batchfs
