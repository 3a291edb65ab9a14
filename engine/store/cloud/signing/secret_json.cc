#include "engine/store/cloud/signing/secret_json.h"

namespace batchfs {

Json parse_secret_json(std::string_view text, const std::string& where) {
  try {
    return parse_json(text, where);
  } catch (const Error& error) {
    throw Error(error.code(), "not valid JSON", where);
  }
}

}  // namespace batchfs
