#include "engine/view/view.h"

#include "engine/view/base_view.h"

namespace batchfs {

std::shared_ptr<const View> View::parse(std::shared_ptr<const Dataset> dataset,
                                        const std::string& json, const std::string& name,
                                        const std::string& where, const ViewOptions& options) {
  ViewSpec spec = parse_view_spec(json, name, where, options);
  try {
    return spec.xbatcher ? make_xbatcher_view(std::move(dataset), std::move(spec))
                         : make_window_view(std::move(dataset), std::move(spec));
  } catch (Error& error) {
    throw error.at(where);
  }
}

}  // namespace batchfs
