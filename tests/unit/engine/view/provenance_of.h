#pragma once
// The provenance of a batch, parsed.

#include "engine/view/describe/provenance_text.h"

namespace batchfs {

inline std::string provenance_text_of(const std::shared_ptr<const View>& view, std::int64_t epoch,
                                      std::int64_t batch, const Json& snapshot = nullptr) {
  Budget budget(1 << 20);
  ProvenanceText source(view, epoch, batch, snapshot, reserve_from(budget));
  std::string text;
  for (std::string piece = source.next(); !piece.empty(); piece = source.next()) text += piece;
  return text;
}

inline Json provenance_of(const std::shared_ptr<const View>& view, std::int64_t epoch,
                          std::int64_t batch) {
  return Json::parse(provenance_text_of(view, epoch, batch));
}

}  // namespace batchfs
