// batchfs view: a starter view for a store.

#include <cstdio>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/view/starter.h"
#include "tools/cli/command.h"
#include "tools/cli/store_options.h"
#include "tools/cli/text.h"
#include "tools/cli/view_options.h"
#include "tools/cli/view_schema.h"

namespace batchfs {

namespace {

struct ViewCommandOptions {
  StoreOptions store;
  std::string name = "train";
  bool schema = false;
};

}  // namespace

CommandAction setup_view(CLI::App& app) {
  const auto options = std::make_shared<ViewCommandOptions>();
  add_store_options(app, options->store);
  CLI::Option* const store = app.get_option("STORE")->required(false);
  app.add_flag("--schema", options->schema,
               "print the JSON schema of views, for editors; without a store")
      ->excludes(store);
  app.add_option("--name", options->name,
                 "the view's name, a directory in the mount (default: train)")
      ->check([](const std::string& name) {
        return is_file_name(name) ? std::string()
                                  : "'" + name + "' cannot be the name of a directory";
      })
      ->type_name("NAME");
  return [options](Output& output) {
    if (options->schema) return output.write(std::string(view_schema()));
    if (options->store.store.empty()) throw UsageError{"STORE is required, or --schema"};
    const OpenedStore opened = open_zarr(options->store);
    const Dataset dataset(opened.store, *opened.hierarchy);
    const StarterView starter = starter_view(dataset, options->name);
    if (!starter.reduced.empty()) {
      std::fputs(fmt::format("batchfs: a batch of everything would take {}; the view has {}. Edit "
                             "it as memory allows; "
                             "`batchfs plan` shows the costs\n",
                             format_size(static_cast<std::uint64_t>(starter.full_bytes)),
                             join(starter.reduced, ", "))
                     .c_str(),
                 stderr);
    }
    output.write(json_text(starter.view) + "\n");
  };
}

}  // namespace batchfs
