#include "engine/base/counted.h"

#include "engine/base/strings.h"

namespace batchfs {

std::string counted(std::int64_t count, const std::string& one, const std::string& several) {
  return format_count(static_cast<std::uint64_t>(count)) + " " +
         (count == 1        ? one
          : several.empty() ? one + "s"
                            : several);
}

}  // namespace batchfs
