#include "engine/telemetry/trace_json.h"

#include <array>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "engine/base/json_text.h"

namespace batchfs {

namespace {

constexpr std::array<const char*, 4> kKindNames{"fetch", "decode", "assemble", "wait"};

std::string json_string(std::string_view text) { return json_text(Json(std::string(text)), -1); }

/// Assigns each event to the first row of its group that is free when it begins.
class Rows {
 public:
  explicit Rows(const std::vector<std::string>& names) : names_(names) {}

  int row_of(const Trace::Event& event) {
    const bool waits = event.kind == Trace::Kind::wait;
    const Key key{event.kind, waits ? event.of.view : 0, waits ? event.of.rank : 0,
                  waits ? event.of.world : 0};
    std::vector<Row>& rows = groups_[key];
    std::size_t i = 0;
    while (i < rows.size() && rows[i].free_at > event.begin) ++i;
    if (i == rows.size()) rows.push_back({++last_, 0});
    rows[i].free_at = event.begin + event.duration;
    return rows[i].number;
  }

  /// `visit(number, name)`, in the order in which they are to be shown.
  template <class Visit>
  void each(Visit&& visit) const {
    for (const auto& [key, rows] : groups_) {
      const auto& [kind, view, rank, world] = key;
      const std::string name =
          kind == Trace::Kind::wait
              ? fmt::format("reader of {} rank {} of {}", names_[view], rank, world)
              : kKindNames[static_cast<std::size_t>(kind)];
      for (std::size_t i = 0; i < rows.size(); ++i)
        visit(rows[i].number, rows.size() == 1 ? name : fmt::format("{} ({})", name, i + 1));
    }
  }

 private:
  struct Row {
    int number;
    std::uint64_t free_at;
  };
  using Key = std::tuple<Trace::Kind, std::uint32_t, std::int32_t, std::int32_t>;
  const std::vector<std::string>& names_;
  std::map<Key, std::vector<Row>> groups_;
  int last_ = 0;
};

void add_event(std::string& text, const Trace::Event& event,
               const std::vector<std::string>& view_names, int pid, int row) {
  const auto to = std::back_inserter(text);
  fmt::format_to(to, R"(,
{{"name":"{}","cat":"batchfs","ph":"X","ts":{}.{:03},"dur":{}.{:03},"pid":{},"tid":{},"args":{{)",
                 kKindNames[static_cast<std::size_t>(event.kind)], event.begin / 1000,
                 event.begin % 1000, event.duration / 1000, event.duration % 1000, pid, row);
  if (event.of.rank >= 0)
    fmt::format_to(to, R"("view":{},"epoch":{},"batch":{},"rank":{},"world":{},)",
                   view_names[event.of.view], event.of.epoch, event.of.batch, event.of.rank,
                   event.of.world);
  if (event.chunk_size > 0) fmt::format_to(to, R"("chunk":{},)", json_string(event.chunk()));
  if (event.end != Trace::End::done)
    fmt::format_to(to, R"("end":"{}",)",
                   event.end == Trace::End::failed ? "failed" : "the reader left");
  fmt::format_to(to, R"("bytes":{}}}}})", event.bytes);
}

}  // namespace

std::string trace_json(const Trace::Snapshot& snapshot, const std::string& process, int pid) {
  std::vector<std::string> view_names;
  for (const std::string& name : snapshot.names) view_names.push_back(json_string(name));
  std::string text = fmt::format(R"([
{{"name":"process_name","ph":"M","pid":{},"tid":0,"args":{{"name":{}}}}})",
                                 pid, json_string(process));
  Rows rows(snapshot.names);
  for (const Trace::Event& event : snapshot.events)
    add_event(text, event, view_names, pid, rows.row_of(event));
  int place = 0;
  rows.each([&](int number, const std::string& name) {
    text += fmt::format(R"(,
{{"name":"thread_name","ph":"M","pid":{0},"tid":{1},"args":{{"name":{2}}}}},
{{"name":"thread_sort_index","ph":"M","pid":{0},"tid":{1},"args":{{"sort_index":{3}}}}})",
                        pid, number, json_string(name), ++place);
  });
  return text + "\n]\n";
}

}  // namespace batchfs
