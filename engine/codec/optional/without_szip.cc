// Replaces szip.cc in a build without libaec.

#include "engine/codec/codecs.h"

namespace batchfs {

std::unique_ptr<Codec> make_szip(const JsonRef&, ChunkLayout&) {
  throw Error(ErrorCode::not_supported,
              "the codec 'imagecodecs_szip' is not supported: this batchfs was built without "
              "libaec (BATCHFS_SZIP)");
}

}  // namespace batchfs
