#pragma once
// Views whose plans are wrong, as a mistake in batchfs could make them.

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "engine/view/tensors/tensor_set.h"
#include "engine/view/view.h"

namespace batchfs {

/// A view whose tensors are changed after they were made.
inline std::shared_ptr<const View> wrong_view(std::shared_ptr<const Dataset> dataset,
                                              const std::string& json,
                                              const std::function<void(TensorSet&)>& change) {
  ViewParts parts = View::parse(std::move(dataset), json, "wrong", "test")->parts();
  auto tensors = std::make_shared<TensorSet>(*parts.tensors);
  change(*tensors);
  parts.tensors = std::move(tensors);
  return std::make_shared<const View>(std::move(parts));
}

}  // namespace batchfs
