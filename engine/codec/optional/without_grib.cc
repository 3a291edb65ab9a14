// Replaces grib.cc in a build without ecCodes.

#include "engine/codec/codecs.h"

namespace batchfs {

std::unique_ptr<Codec> make_grib(const JsonRef&, ChunkLayout&) {
  throw Error(ErrorCode::not_supported,
              "the codec 'grib' is not supported: this batchfs was built without ecCodes "
              "(BATCHFS_GRIB)");
}

}  // namespace batchfs
