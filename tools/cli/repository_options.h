#pragma once
// The options that choose a version of an Icechunk repository, and the locations it may refer to.

#include <cstdint>
#include <optional>
#include <string_view>

#include <CLI/CLI.hpp>

#include "engine/store/icechunk/options.h"
#include "engine/store/virtual/virtual_options.h"

namespace batchfs {

/// `options` and `outside` must outlive the parsing.
void add_repository_options(CLI::App& app, IcechunkOptions& options, VirtualOptions& outside);

/// Parses "2024-05-01", "2024-05-01T12:30", "2024-05-01T12:30:15.5Z", "2024-05-01T14:30+02:00": UTC
/// without an offset, microseconds since 1970. nullopt for anything else.
std::optional<std::int64_t> parse_time_of_day(std::string_view text);

}  // namespace batchfs
