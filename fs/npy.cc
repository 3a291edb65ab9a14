#include "fs/npy.h"

namespace batchfs {

std::string npy_header(const DataType& type, const Dims& shape, std::uint64_t alignment) {
  std::string text = "{'descr': " + type.npy_descr() + ", 'fortran_order': False, 'shape': (";
  for (std::int64_t n : shape) text += std::to_string(n) + ", ";
  // numpy writes (3,) for one dimension and (2, 3) for more.
  if (shape.size() == 1) text.pop_back();
  else if (shape.size() > 1) text.resize(text.size() - 2);
  text += "), }";
  const bool large = text.size() > 60000;
  const std::size_t fixed = large ? 12 : 10;  // magic, version, length of the text
  const std::size_t total = (fixed + text.size() + 1 + alignment - 1) / alignment * alignment;
  text.append(total - fixed - text.size() - 1, ' ');
  text += '\n';
  std::string header("\x93NUMPY", 6);
  header += large ? '\x02' : '\x01';
  header += '\0';
  for (std::size_t i = 0; i < fixed - 8; ++i)
    header += static_cast<char>((text.size() >> (8 * i)) & 0xff);
  return header + text;
}

}  // namespace batchfs
