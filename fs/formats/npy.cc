#include "fs/formats/npy.h"

#include <algorithm>

namespace batchfs {

std::string npy_header(const DataType& type, const Dims& shape, std::uint64_t alignment) {
  std::string text = "{'descr': " + type.npy_descr() + ", 'fortran_order': False, 'shape': (";
  for (std::int64_t n : shape) text += std::to_string(n) + ", ";
  // numpy writes (3,) for one dimension and (2, 3) for more.
  if (shape.size() == 1)
    text.pop_back();
  else if (shape.size() > 1)
    text.resize(text.size() - 2);
  text += "), }";
  // Version 1.0 has two bytes for the length of the text, 2.0 four; 3.0 is 2.0 in UTF-8 (names of
  // fields).
  const bool ascii =
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x80; });
  const char version = !ascii ? 3 : text.size() > 60000 ? 2 : 1;
  const std::size_t fixed = version > 1 ? 12 : 10;  // magic, version, length
  const std::size_t total = (fixed + text.size() + 1 + alignment - 1) / alignment * alignment;
  text.append(total - fixed - text.size() - 1, ' ');
  text += '\n';
  std::string header("\x93NUMPY", 6);
  header += version;
  header += '\0';
  for (std::size_t i = 0; i < fixed - 8; ++i)
    header += static_cast<char>((text.size() >> (8 * i)) & 0xff);
  return header + text;
}

}  // namespace batchfs
