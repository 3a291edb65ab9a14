#pragma once
// A view's file and those that it names, in a directory that is deleted with the test.

#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "engine/view/spec.h"
#include "engine/view/view.h"
#include "tests/unit/engine/store/temporary_directory.h"

namespace batchfs {

class ViewFolder {
 public:
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  std::shared_ptr<const View> parse(std::shared_ptr<const Dataset> dataset,
                                    const std::string& json) const {
    ViewOptions options;
    options.file_path = [this](const std::string& name) { return folder_ / name; };
    return View::parse(std::move(dataset), json, "given", "file.json", options);
  }

 private:
  const TemporaryDirectory folder_;
};

}  // namespace batchfs
