#pragma once
// Is what has arrived what was asked for?

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/store/http/http_client.h"

namespace batchfs {

/// Checks an answer to a GET of an object, or of a `range` of it, whose status is 2xx or 416:
/// status, Content-Range (RFC 9110, 14.4) and length fit what was asked for, and it is no web page
/// in an object's place. Throws io (the answer is broken; asking again may help) or corrupt (it is
/// something else). Gives the object's size where the answer tells.
std::optional<std::uint64_t> check_object(const HttpResponse& response,
                                          const std::optional<ByteRange>& range,
                                          const std::string& where);

/// Does an answer with the whole object say where it ends? One that ends with its connection may be
/// the beginning of an object.
bool is_framed(const HttpResponse& response);
/// Is the body compressed, or changed otherwise, for its way (Content-Encoding)?
bool is_encoded(const HttpResponse& response);

/// How a server takes requests for ranges.
enum class RangeSupport {
  as_asked,
  no_suffixes,  // the last bytes must be asked for by their offset
  none,         // it must be asked for the whole
};
/// What the answer to a request for a range tells.
RangeSupport range_support(const HttpResponse& response, const ByteRange& range);
/// May this status refuse a range for its form?
bool may_refuse_range(int status);

/// Of an answer with status 206. A server may send more than it was asked for: then Content-Range
/// becomes the range asked for. Returns how many bytes come before it.
std::optional<std::uint64_t> narrow_range(HttpResponse& response, const ByteRange& range);

/// What changes when the object does: its ETag as it was sent, else "modified " and its
/// modification time. Empty when the answer names neither.
std::string version_of(const HttpResponse& response);
/// What changes when the object does, as far as the answer tells: the ETag without the mark of a
/// weak one, which a server that compresses adds; else the modification time, which counts seconds,
/// and the size; else the size. Empty when that is not known.
std::string identity_of(std::string_view version, std::optional<std::uint64_t> object_size);
/// When the object was last changed, in seconds since 1970; nullopt where the answer does not tell.
std::optional<std::int64_t> modified_of(const HttpResponse& response);
/// The condition under which an object is to be sent again: that it no longer is this version (RFC
/// 9110, 13.1).
std::pair<std::string, std::string> unless_version(const std::string& version);

/// The seconds of a Retry-After header: a number, or a date (RFC 9110, 10.2.3). nullopt without
/// one.
std::optional<double> retry_after(const HttpResponse& response);

}  // namespace batchfs
