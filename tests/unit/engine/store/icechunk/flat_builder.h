#pragma once
// Writes FlatBuffers for tests, front to back: every table, vector and text is appended, and
// offsets are filled in when their target is written.

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace batchfs {

/// One field of a table: inline bytes, or the target of an offset, which writes itself.
struct FlatField {
  std::string in_place;
  std::function<std::uint32_t(class FlatBuilder&)> target;
};

class FlatBuilder {
 public:
  using Fields = std::map<int, FlatField>;

  /// The whole buffer of a root table.
  static std::string file(const Fields& root, std::string_view identifier = "Ichk") {
    FlatBuilder builder;
    builder.out_ = std::string(4, '\0') + std::string(identifier);
    const std::uint32_t at = builder.table(root);
    std::memcpy(builder.out_.data(), &at, sizeof at);
    return builder.out_;
  }

  std::uint32_t table(const Fields& fields) {
    const int slots = fields.empty() ? 0 : fields.rbegin()->first + 1;
    std::vector<std::uint16_t> vtable(static_cast<std::size_t>(slots) + 2, 0);
    std::uint16_t size = 4;
    for (const auto& [slot, field] : fields) {
      vtable[static_cast<std::size_t>(slot) + 2] = size;
      size = static_cast<std::uint16_t>(size + (field.target ? 4 : field.in_place.size()));
    }
    vtable[0] = static_cast<std::uint16_t>(vtable.size() * 2);
    vtable[1] = size;
    const auto vtable_at = position();
    for (const std::uint16_t value : vtable) append(value);
    const auto at = position();
    append(static_cast<std::int32_t>(at - vtable_at));
    std::vector<std::pair<std::uint32_t, const FlatField*>> later;
    for (const auto& [slot, field] : fields) {
      if (field.target) {
        later.emplace_back(position(), &field);
        append<std::uint32_t>(0);
      } else {
        out_ += field.in_place;
      }
    }
    for (const auto& [where, field] : later) fill(where, field->target(*this));
    return at;
  }

  std::uint32_t bytes(std::string_view data, std::uint32_t count) {
    const auto at = position();
    append(count);
    out_ += data;
    return at;
  }

  std::uint32_t tables(const std::vector<Fields>& elements) {
    const auto at = position();
    append(static_cast<std::uint32_t>(elements.size()));
    const auto first = position();
    out_.append(elements.size() * 4, '\0');
    for (std::size_t i = 0; i < elements.size(); ++i)
      fill(first + static_cast<std::uint32_t>(i) * 4, table(elements[i]));
    return at;
  }

  std::uint32_t texts(const std::vector<std::string>& elements) {
    const auto at = position();
    append(static_cast<std::uint32_t>(elements.size()));
    const auto first = position();
    out_.append(elements.size() * 4, '\0');
    for (std::size_t i = 0; i < elements.size(); ++i)
      fill(first + static_cast<std::uint32_t>(i) * 4,
           bytes(elements[i], static_cast<std::uint32_t>(elements[i].size())));
    return at;
  }

 private:
  std::uint32_t position() const { return static_cast<std::uint32_t>(out_.size()); }
  template <class Number>
  void append(Number value) {
    out_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void fill(std::uint32_t where, std::uint32_t target) {
    const std::uint32_t offset = target - where;
    std::memcpy(out_.data() + where, &offset, sizeof offset);
  }

  std::string out_;
};

template <class Number>
FlatField flat_number(Number value) {
  return {std::string(reinterpret_cast<const char*>(&value), sizeof value), nullptr};
}
inline FlatField flat_struct(std::string bytes) { return {std::move(bytes), nullptr}; }
inline FlatField flat_text(std::string text) {
  return {{}, [text](FlatBuilder& b) {
            return b.bytes(text, static_cast<std::uint32_t>(text.size()));
          }};
}
/// A vector of `stride`-byte elements.
inline FlatField flat_vector(std::string bytes, std::uint32_t stride) {
  return {{}, [bytes, stride](FlatBuilder& b) {
            return b.bytes(bytes, static_cast<std::uint32_t>(bytes.size() / stride));
          }};
}
inline FlatField flat_table(FlatBuilder::Fields fields) {
  return {{}, [fields](FlatBuilder& b) { return b.table(fields); }};
}
inline FlatField flat_tables(std::vector<FlatBuilder::Fields> elements) {
  return {{}, [elements](FlatBuilder& b) { return b.tables(elements); }};
}
inline FlatField flat_texts(std::vector<std::string> elements) {
  return {{}, [elements](FlatBuilder& b) { return b.texts(elements); }};
}

}  // namespace batchfs
