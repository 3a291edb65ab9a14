// Replaces zfpy.cc in a build without zfp.

#include "engine/codec/codecs.h"

namespace batchfs {

std::unique_ptr<Codec> make_zfpy(const JsonRef&, ChunkLayout&) {
  throw Error(ErrorCode::not_supported,
              "the codec 'zfpy' is not supported: this batchfs was built without zfp "
              "(BATCHFS_ZFP)");
}

}  // namespace batchfs
