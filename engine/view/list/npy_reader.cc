#include "engine/view/list/npy_reader.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string>

#include <fmt/format.h>

namespace batchfs {

namespace {

constexpr std::size_t kMaxHeader = 64 << 10;
constexpr std::size_t kBlock = 1 << 17;  // elements

/// The text after `'key':` in the dictionary of a header, which has no nested braces.
std::string_view value_of(const NamedFile& file, std::string_view header, std::string_view key) {
  const std::string quoted = fmt::format("'{}':", key);
  const std::size_t at = header.find(quoted);
  if (at == std::string_view::npos)
    throw file.error(fmt::format("not a .npy file: its header has no '{}'", key));
  std::string_view rest = header.substr(at + quoted.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  return rest;
}

std::vector<std::int64_t> parse_shape(const NamedFile& file, std::string_view text) {
  const auto fail = [&] { return file.error("not a .npy file: its header has no valid shape"); };
  const std::size_t end = text.find(')');
  if (text.empty() || text.front() != '(' || end == std::string_view::npos) throw fail();
  text = text.substr(1, end - 1);
  std::vector<std::int64_t> shape;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (text.empty()) return shape;
    std::int64_t length = 0;
    const auto [after, error] = std::from_chars(text.data(), text.data() + text.size(), length);
    if (error != std::errc() || length < 0 || shape.size() == 32) throw fail();
    shape.push_back(length);
    text.remove_prefix(static_cast<std::size_t>(after - text.data()));
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (text.empty()) return shape;
    if (text.front() != ',') throw fail();
    text.remove_prefix(1);
  }
}

template <class Stored, class Value, class Use>
void read_elements(NamedFile& file, std::int64_t elements, const Use& use) {
  std::vector<Stored> stored(std::min<std::size_t>(kBlock, static_cast<std::size_t>(elements)));
  std::vector<Value> values(stored.size());
  for (std::int64_t first = 0; first < elements;) {
    const std::size_t count = std::min(stored.size(), static_cast<std::size_t>(elements - first));
    const std::size_t bytes = count * sizeof(Stored);
    if (file.read({reinterpret_cast<std::byte*>(stored.data()), bytes}) != bytes)
      throw file.error("the file became shorter while it was read");
    for (std::size_t i = 0; i < count; ++i) {
      if constexpr (std::is_same_v<Stored, std::uint64_t> && std::is_same_v<Value, std::int64_t>)
        stored[i] = std::min<Stored>(stored[i], INT64_MAX);  // no dimension is so long
      values[i] = static_cast<Value>(stored[i]);
    }
    use(first, std::span<const Value>(values.data(), count));
    first += static_cast<std::int64_t>(count);
  }
  std::byte more;
  if (file.read({&more, 1}) != 0) throw file.error("the file became longer while it was read");
}

template <class Value, class Use>
void read_values(NamedFile& file, const NpyHeader& header, const Use& use) {
  const std::int64_t n = header.elements();
  const int bits = header.itemsize * 8;
  if (header.kind == 'f') {
    if constexpr (std::is_floating_point_v<Value>)
      return bits == 32 ? read_elements<float, Value>(file, n, use)
                        : read_elements<double, Value>(file, n, use);
  } else if (header.kind == 'i') {
    return bits == 8    ? read_elements<std::int8_t, Value>(file, n, use)
           : bits == 16 ? read_elements<std::int16_t, Value>(file, n, use)
           : bits == 32 ? read_elements<std::int32_t, Value>(file, n, use)
                        : read_elements<std::int64_t, Value>(file, n, use);
  } else {
    return bits == 8    ? read_elements<std::uint8_t, Value>(file, n, use)
           : bits == 16 ? read_elements<std::uint16_t, Value>(file, n, use)
           : bits == 32 ? read_elements<std::uint32_t, Value>(file, n, use)
                        : read_elements<std::uint64_t, Value>(file, n, use);
  }
  throw Error(ErrorCode::internal, "floats are not read as integers");
}

}  // namespace

std::int64_t NpyHeader::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t length : shape)
    if (__builtin_mul_overflow(count, length, &count)) return -1;
  return count;
}

NpyHeader read_npy_header(NamedFile& file) {
  const auto fail = [&](const std::string& why) { return file.error("not a .npy file: " + why); };
  unsigned char start[12];
  const auto read = [&](void* to, std::size_t bytes) {
    if (file.read({static_cast<std::byte*>(to), bytes}) != bytes)
      throw fail("it ends in its header");
  };
  read(start, 10);
  if (std::memcmp(start, "\x93NUMPY", 6) != 0) throw fail("it does not begin as one");
  const int version = start[6];
  if (version < 1 || version > 3) throw fail(fmt::format("its format has version {}", version));
  std::size_t length = start[8] | start[9] << 8;
  std::size_t before = 10;
  if (version > 1) {
    read(start + 10, 2);
    length |= static_cast<std::size_t>(start[10]) << 16 | static_cast<std::size_t>(start[11]) << 24;
    before = 12;
  }
  if (length > kMaxHeader) throw fail(fmt::format("its header has {} bytes", length));
  std::string header(length, '\0');
  read(header.data(), length);

  NpyHeader result;
  const std::string_view descr = value_of(file, header, "descr");
  const std::size_t end = descr.empty() || descr.front() != '\'' ? 0 : descr.find('\'', 1);
  const std::string type(end == 0 || end == std::string_view::npos ? "" : descr.substr(1, end - 1));
  const bool known =
      type.size() == 3 && (type[0] == '<' || type[0] == '|') &&
      ((std::strchr("iu", type[1]) != nullptr && std::strchr("1248", type[2]) != nullptr) ||
       (type[1] == 'f' && std::strchr("48", type[2]) != nullptr) ||
       (type[1] == 'b' && type[2] == '1'));
  if (!known)
    throw file.error(type.empty() ? "its elements are structured; save numbers"
                                  : fmt::format("its elements are '{}'; save numbers", type));
  result.kind = type[1];
  result.itemsize = type[2] - '0';
  const std::string_view order = value_of(file, header, "fortran_order");
  if (!order.starts_with("True") && !order.starts_with("False"))
    throw fail("its header has no valid fortran_order");
  result.fortran_order = order.starts_with("True");
  result.shape = parse_shape(file, value_of(file, header, "shape"));
  const std::int64_t elements = result.elements();
  std::uint64_t bytes = 0;
  if (elements < 0 ||
      __builtin_mul_overflow(static_cast<std::uint64_t>(elements),
                             static_cast<std::uint64_t>(result.itemsize), &bytes) ||
      bytes != file.size() - before - length)
    throw file.error(fmt::format("the header speaks of {} elements, and {} bytes follow",
                                 elements < 0 ? "more than 2^63" : std::to_string(elements),
                                 file.size() - before - length));
  return result;
}

void read_npy_integers(
    NamedFile& file, const NpyHeader& header,
    const std::function<void(std::int64_t first, std::span<const std::int64_t>)>& use) {
  read_values<std::int64_t>(file, header, use);
}

void read_npy_numbers(NamedFile& file, const NpyHeader& header,
                      const std::function<void(std::int64_t first, std::span<const double>)>& use) {
  read_values<double>(file, header, use);
}

}  // namespace batchfs
