#pragma once
// Codecs that stores name and batchfs does not have.

#include <string>
#include <string_view>

namespace batchfs {

/// ": why, and what to do", to be put behind "is not supported"; empty where nothing is known of
/// the name.
std::string refused_codec_advice(std::string_view name);

}  // namespace batchfs
