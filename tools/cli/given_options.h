#pragma once
// The options of a command line with which a store is opened, for commands that are proposed.

#include <string>

#include "tools/cli/store_options.h"

namespace batchfs {

/// Enters the options of `app` that change how a store is opened, in place of earlier ones of the
/// same name. Precondition: `app` has parsed its command line.
void enter_given_options(const CLI::App& app, StoreOptions& options);

/// Leaves out what applies to the first store only.
StoreOptions::Given given_for_others(const StoreOptions::Given& given);

/// "--anon --virtual s3://x/ ", each followed by a blank. Passwords and queries of URLs become
/// "...".
std::string words_of(const StoreOptions::Given& given);

/// Quotes an argument for a shell.
std::string shell_word(const std::string& text);

}  // namespace batchfs
