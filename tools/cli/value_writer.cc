#include "tools/cli/value_writer.h"

#include <algorithm>
#include <vector>

#include "fs/formats/npy.h"
#include "tools/cli/value_text.h"

namespace batchfs {

namespace {

class NpyWriter : public ValueWriter {
 public:
  NpyWriter(Output& output, const DataType& type, const Dims& shape) : output_(output) {
    output_.write(npy_header(type, shape, 64));
  }
  void write(std::span<const std::byte> elements) override { output_.write(elements); }
  void finish() override {}

 private:
  Output& output_;
};

/// Writes an array without elements: lists down to the first length of 0.
void append_empty(std::string& out, const Dims& shape, std::size_t d) {
  out += '[';
  for (std::int64_t i = 0; i < shape[d]; ++i) {
    if (i > 0) out += ", ";
    append_empty(out, shape, d + 1);
  }
  out += ']';
}

class JsonWriter : public ValueWriter {
 public:
  JsonWriter(Output& output, const DataType& type, const Dims& shape)
      : output_(output), type_(type), shape_(shape), at_(shape.size()) {}

  void write(std::span<const std::byte> elements) override {
    std::string text;
    for (std::size_t i = 0; i + type_.itemsize <= elements.size(); i += type_.itemsize) {
      append(text, elements.data() + i);
      if (text.size() > (32 << 10)) {
        output_.write(text);
        text.clear();
      }
    }
    output_.write(text);
  }

  void finish() override {
    std::string text;
    if (element_count(shape_) == 0) {
      std::int64_t lists = 1;
      for (std::size_t d = 0; shape_[d] != 0; ++d) lists *= shape_[d];
      if (lists > 1'000'000) {
        throw Error(ErrorCode::not_supported,
                    "an array without elements, but of a million lists or more");
      }
      append_empty(text, shape_, 0);
    }
    output_.write(text + "\n");
  }

 private:
  /// An element, the brackets that open before it and close after it, and the comma.
  void append(std::string& text, const std::byte* element) {
    std::size_t fresh = shape_.size();  // dimensions from this one on are at their start
    while (fresh > 0 && at_[fresh - 1] == 0) --fresh;
    if (!first_) text += ", ";
    first_ = false;
    text.append(shape_.size() - fresh, '[');
    append_value(text, type_, element, TextStyle::json);
    for (std::size_t d = shape_.size(); d-- > 0;) {
      if (++at_[d] < shape_[d]) return;
      at_[d] = 0;
      text += ']';
    }
  }

  Output& output_;
  const DataType type_;
  const Dims shape_;
  Dims at_;  // index of the next element
  bool first_ = true;
};

class TextWriter : public ValueWriter {
 public:
  TextWriter(Output& output, const DataType& type, const Dims& shape, const Dims& elided)
      : output_(output), type_(type), shape_(shape), elided_(elided) {}

  void write(std::span<const std::byte> elements) override {
    for (std::size_t i = 0; i + type_.itemsize <= elements.size(); i += type_.itemsize) {
      cells_.emplace_back();
      append_value(cells_.back(), type_, elements.data() + i, TextStyle::people);
      width_ = std::max(width_, cells_.back().size());
    }
  }

  void finish() override {
    if (element_count(shape_) == 0) {
      output_.write("no values: a dimension has length 0\n");
      return;
    }
    std::string text;
    if (shape_.empty())
      text = cells_[0];
    else
      append_list(text, 0);
    output_.write(text + "\n");
  }

 private:
  static constexpr std::size_t kLineWidth = 96;

  void append_list(std::string& text, std::size_t d) {
    text += '[';
    const bool innermost = d + 1 == shape_.size();
    std::size_t column = shape_.size();
    for (std::int64_t i = 0; i < shape_[d]; ++i) {
      if (i > 0) separate(text, d, innermost, column);
      if (elided_[d] != 0 && i == shape_[d] / 2) {
        text += "...";
        column += 4;
        separate(text, d, innermost, column);
      }
      if (!innermost) {
        append_list(text, d + 1);
        continue;
      }
      const std::string& cell = cells_[next_++];
      text.append(width_ - cell.size(), ' ');
      text += cell;
      column += width_ + 1;
    }
    text += ']';
  }

  /// Between two things in a list of dimension `d`: a space, or a new line under the list's first
  /// one.
  void separate(std::string& text, std::size_t d, bool innermost, std::size_t& column) const {
    if (innermost && column + width_ <= kLineWidth) {
      text += ' ';
      return;
    }
    text += '\n';
    if (d + 2 < shape_.size()) text += '\n';  // blank lines between planes
    text.append(d + 1, ' ');
    column = shape_.size();
  }

  Output& output_;
  const DataType type_;
  const Dims shape_, elided_;
  std::vector<std::string> cells_;
  std::size_t width_ = 0, next_ = 0;
};

}  // namespace

std::unique_ptr<ValueWriter> npy_writer(Output& output, const DataType& type, const Dims& shape) {
  return std::make_unique<NpyWriter>(output, type, shape);
}

std::unique_ptr<ValueWriter> json_writer(Output& output, const DataType& type, const Dims& shape) {
  return std::make_unique<JsonWriter>(output, type, shape);
}

std::unique_ptr<ValueWriter> text_writer(Output& output, const DataType& type, const Dims& shape,
                                         const Dims& elided) {
  return std::make_unique<TextWriter>(output, type, shape, elided);
}

}  // namespace batchfs
