#pragma once
// Codecs that stores name and batchfs does not have.

#include <string>
#include <string_view>

namespace batchfs {

/// ": why, and what to do", to follow "is not supported"; empty for an unknown name.
std::string refused_codec_advice(std::string_view name);

}  // namespace batchfs
