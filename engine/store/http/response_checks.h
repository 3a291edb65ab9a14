#pragma once
// Checks that an answer matches its request.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/store/http/http_client.h"

namespace batchfs {

/// Checks an answer to a GET of an object, or of a `range` of it, whose status is 2xx or 416:
/// status, Content-Range (RFC 9110, 14.4) and length match the request, and it is not a web page in
/// an object's place. Throws io (the answer is broken; asking again may help) or corrupt (it is
/// something else). Returns the object's size where the answer contains it.
std::optional<std::uint64_t> check_object(const HttpResponse& response,
                                          const std::optional<ByteRange>& range,
                                          const std::string& where);

/// Does an answer with the whole object declare its length? One that ends with its connection may
/// be the beginning of an object.
bool is_framed(const HttpResponse& response);
/// Is the body compressed, or changed otherwise, for its way (Content-Encoding)?
bool is_encoded(const HttpResponse& response);

/// How a server takes requests for ranges.
enum class RangeSupport {
  as_asked,
  no_suffixes,  // the last bytes must be requested by their offset
  none,         // the whole object must be requested
};
/// The support for ranges that the answer to a request for one shows.
RangeSupport range_support(const HttpResponse& response, const ByteRange& range);
/// May this status refuse a range for its form?
bool may_refuse_range(int status);

/// For an answer with status 206. A server may send more than was requested: then Content-Range
/// becomes the requested range. Returns how many bytes precede it.
std::optional<std::uint64_t> narrow_range(HttpResponse& response, const ByteRange& range);

/// A text that changes when the object does: its ETag as it was sent, else "modified " and its
/// modification time. Empty when the answer names neither.
std::string version_of(const HttpResponse& response);
/// Is this version_of() an answer that names none but the modification time?
bool is_date(std::string_view version);
/// A text that changes when the object does, as far as the answer shows: the ETag without the mark
/// of a weak one, which a server that compresses adds; else the modification time, which counts
/// seconds, and the size; else the size. Empty when that is not known.
std::string identity_of(std::string_view version, std::optional<std::uint64_t> object_size);
/// When the object was last changed, in seconds since 1970; nullopt where the answer does not
/// contain it.
std::optional<std::int64_t> modified_of(const HttpResponse& response);
/// When the answer was made, in the same way.
std::optional<std::int64_t> sent_of(const HttpResponse& response);
/// The condition for sending an object again: that it no longer is this version (RFC 9110, 13.1).
std::pair<std::string, std::string> unless_version(const std::string& version);

/// The seconds of a Retry-After header: a number, or a date (RFC 9110, 10.2.3). nullopt without
/// one.
std::optional<double> retry_after(const HttpResponse& response);

}  // namespace batchfs
