#pragma once
// Keys that other programs have: an unknown key of theirs is answered with the key that does the
// same here.

#include <initializer_list>
#include <span>
#include <string_view>

#include "engine/base/json.h"

namespace batchfs {

struct KeyHint {
  std::string_view key;     // compared without regard to case, '-' as '_'
  std::string_view advice;  // "write \"batch\": {\"size\": 32}"
};

/// Like JsonRef::allow_only, but the error for an unknown key of `hints` carries its advice.
void allow_only(const JsonRef& json, std::initializer_list<std::string_view> known,
                std::span<const KeyHint> hints);

/// The advice for a word; empty if there is none.
std::string_view advice_for(std::string_view word, std::span<const KeyHint> hints);

}  // namespace batchfs
