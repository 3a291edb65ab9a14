#include "engine/scan/verify_part.h"

#include <array>
#include <utility>

namespace batchfs {

namespace {

using Counter = std::uint64_t VerifyReport::*;

constexpr std::array<std::pair<const char*, Counter>, 9> kCounters = {{
    {"arrays", &VerifyReport::arrays},
    {"objects", &VerifyReport::objects},
    {"chunks", &VerifyReport::chunks},
    {"selected_chunks", &VerifyReport::selected_chunks},
    {"known_chunks", &VerifyReport::known_chunks},
    {"stored_bytes", &VerifyReport::stored_bytes},
    {"decoded_bytes", &VerifyReport::decoded_bytes},
    {"problems", &VerifyReport::problems},
    {"notes", &VerifyReport::note_count},
}};

Json notes_json(const std::vector<VerifyNote>& notes) {
  Json list = Json::array();
  for (const VerifyNote& note : notes) list.push_back(Json::array({note.key, note.why}));
  return list;
}

std::vector<std::string> texts(const JsonRef& json, std::size_t count) {
  std::vector<std::string> result = json.strings();
  if (result.size() != count) throw json.error("expected a list of another length");
  return result;
}

std::vector<VerifyNote> parse_notes(const JsonRef& json) {
  std::vector<VerifyNote> notes;
  for (const JsonRef& one : json.elements()) {
    std::vector<std::string> note = texts(one, 2);
    notes.push_back({std::move(note[0]), std::move(note[1])});
  }
  return notes;
}

}  // namespace

Json verify_part(const VerifyReport& report) {
  Json counters = Json::object(), findings = Json::array();
  for (const auto& [name, counter] : kCounters) counters[name] = report.*counter;
  for (const Finding& f : report.findings)
    findings.push_back(Json::array({f.array, f.chunk, f.key, f.what, f.why}));
  return {{"counters", std::move(counters)},
          {"findings", std::move(findings)},
          {"notes", notes_json(report.notes)},
          {"not_checked", notes_json(report.not_checked)}};
}

VerifyReport parse_verify_part(const JsonRef& json) {
  VerifyReport report;
  const JsonRef counters = json.at("counters");
  for (const auto& [name, counter] : kCounters) {
    const JsonRef number = counters.at(name);
    if (!number.value().is_number_unsigned()) throw number.error("expected a count");
    report.*counter = number.value().get<std::uint64_t>();
  }
  for (const JsonRef& one : json.at("findings").elements()) {
    std::vector<std::string> f = texts(one, 5);
    report.findings.push_back(
        {std::move(f[0]), std::move(f[1]), std::move(f[2]), std::move(f[3]), std::move(f[4])});
  }
  report.notes = parse_notes(json.at("notes"));
  report.not_checked = parse_notes(json.at("not_checked"));
  return report;
}

}  // namespace batchfs
