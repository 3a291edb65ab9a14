// `cast_value`: elements stored as numbers of another type. Source: zarr-extensions, codec
// "cast_value"; values are those of zarr-python 3.4 with cast-value-rs 0.5.

#include <array>

#include "engine/codec/codecs.h"
#include "engine/codec/numbers/checked_cast.h"
#include "engine/codec/typed.h"

namespace batchfs {

namespace {

constexpr std::size_t kMaxMapped = 256;  // each element is compared with all of them

/// Numbers of one type that stand for numbers of another; the first entry of a number counts.
class ScalarMap {
 public:
  ScalarMap(std::optional<JsonRef> entries, const DataType& from, const DataType& to) {
    if (!entries || entries->is_null()) return;
    for (const JsonRef& entry : entries->elements()) {
      const std::vector<JsonRef> pair = entry.elements();
      if (pair.size() != 2) throw entry.error("expected [input, output]");
      append(inputs_, parse_fill_value(from, pair[0]));
      append(outputs_, parse_fill_value(to, pair[1]));
      if (++count_ > kMaxMapped)
        throw entries->error(
            fmt::format("scalar maps of more than {} numbers are not supported", kMaxMapped),
            ErrorCode::not_supported);
    }
  }

  bool empty() const { return count_ == 0; }

  template <class To, class From>
  std::optional<To> find(From value) const {
    for (std::size_t i = 0; i < count_; ++i) {
      const From input = read_number<From>(inputs_.data() + i * sizeof(From), false);
      if (input == value || (input != input && value != value))
        return read_number<To>(outputs_.data() + i * sizeof(To), false);
    }
    return std::nullopt;
  }

 private:
  static void append(std::vector<std::byte>& list, const std::vector<std::byte>& value) {
    list.insert(list.end(), value.begin(), value.end());
  }

  std::vector<std::byte> inputs_, outputs_;  // numbers in native order, one after the other
  std::size_t count_ = 0;
};

/// Precondition: `out` has room for as many elements as `in` has. Numbers are in native order.
void cast_elements(std::span<const std::byte> in, const DataType& from, std::span<std::byte> out,
                   const DataType& to, const ScalarMap& map, CastRules rules) {
  const std::size_t count = in.size() / from.itemsize;
  with_number(from, [&](auto f) {
    with_number(to, [&](auto t) {
      using From = decltype(f);
      using To = decltype(t);
      const auto each = [&](auto&& convert) {
        for (std::size_t i = 0; i < count; ++i)
          write_number<To>(out.data() + i * sizeof(To),
                           convert(read_number<From>(in.data() + i * sizeof(From), false)), false);
      };
      if (is_exact_cast<To, From>() && map.empty())
        return each([](From value) { return static_cast<To>(value); });
      each([&](From value) {
        if (!map.empty())
          if (const auto mapped = map.find<To>(value)) return *mapped;
        const std::optional<To> result = checked_cast<To>(value, rules);
        if (!result)
          throw Error(ErrorCode::corrupt, fmt::format("the value {} does not fit {}",
                                                      printable_number(value), to.name()));
        return *result;
      });
    });
  });
}

class CastValueCodec final : public TypedCodec {
 public:
  CastValueCodec(DataType decoded, DataType encoded, ScalarMap map, CastRules rules)
      : TypedCodec(std::move(decoded), std::move(encoded)), map_(std::move(map)), rules_(rules) {}
  std::string_view name() const override { return "cast_value"; }

  std::size_t decode(std::span<const std::byte> in, std::span<std::byte> out) const override {
    if (in.size() % encoded_.itemsize != 0 ||
        in.size() / encoded_.itemsize > out.size() / decoded_.itemsize)
      throw Error(ErrorCode::corrupt,
                  fmt::format("{} bytes of {} do not fit the chunk", in.size(), encoded_.name()));
    cast_elements(in, encoded_, out, decoded_, map_, rules_);
    return in.size() / encoded_.itemsize * decoded_.itemsize;
  }

 private:
  const ScalarMap map_;  // of stored numbers
  const CastRules rules_;
};

const DataType& check_castable(const DataType& type, const JsonRef& where) {
  if (!type.is_integer() && type.kind != Kind::floating)
    throw where.error(fmt::format("casts of the data type {} are not supported", type.name()),
                      ErrorCode::not_supported);
  return type;
}

template <class Value, std::size_t N>
Value named(const JsonRef& json, const std::array<std::pair<std::string_view, Value>, N>& names) {
  const std::string text = json.string();
  std::vector<std::string> known;
  for (const auto& [name, value] : names) {
    if (name == text) return value;
    known.emplace_back(name);
  }
  throw json.error(fmt::format("'{}' is not known{}", text, nearest_or_all(text, known)));
}

CastRules parse_rules(const JsonRef& configuration, const DataType& encoded) {
  static constexpr std::array<std::pair<std::string_view, Rounding>, 5> kRoundings = {
      {{"nearest-even", Rounding::nearest_even},
       {"towards-zero", Rounding::towards_zero},
       {"towards-positive", Rounding::towards_positive},
       {"towards-negative", Rounding::towards_negative},
       {"nearest-away", Rounding::nearest_away}}};
  static constexpr std::array<std::pair<std::string_view, OutOfRange>, 3> kOutOfRange = {
      {{"clamp", OutOfRange::clamp},
       {"wrap", OutOfRange::wrap},
       {"error", OutOfRange::error}}};  // of drafts of the specification
  CastRules rules;
  if (const auto rounding = configuration.find("rounding"); rounding && !rounding->is_null())
    rules.rounding = named(*rounding, kRoundings);
  if (const auto mode = configuration.find("out_of_range"); mode && !mode->is_null()) {
    rules.out_of_range = named(*mode, kOutOfRange);
    if (rules.out_of_range == OutOfRange::wrap && !encoded.is_integer())
      throw mode->error("\"wrap\" is for integers only, the stored type is " + encoded.name());
  }
  return rules;
}

/// The nearest number that has a code.
std::vector<std::byte> rounded(const SmallNumber& stored, const std::vector<std::byte>& number) {
  const Json value = with_number(stored.type(), [&](auto zero) {
    return Json(static_cast<double>(read_number<decltype(zero)>(number.data(), false)));
  });
  return stored.parse_fill(JsonRef(value, "fill_value"));
}

}  // namespace

std::unique_ptr<Codec> make_cast_value(const JsonRef& configuration, ChunkLayout& layout) {
  configuration.allow_only({"data_type", "rounding", "out_of_range", "scalar_map"});
  if (layout.stored != nullptr)
    throw configuration.error(
        fmt::format("casts of the data type {} are not supported", layout.stored->name),
        ErrorCode::not_supported);
  const DataType decoded = check_castable(layout.type, configuration);
  const JsonRef stored = configuration.at("data_type");
  layout.stored = find_small_number(stored);
  const DataType encoded = layout.stored != nullptr ? layout.stored->type()
                                                    : check_castable(parse_v3_type(stored), stored);
  const CastRules rules = parse_rules(configuration, encoded);
  std::optional<JsonRef> encode, decode;
  if (const auto map = configuration.find("scalar_map"); map && !map->is_null()) {
    map->allow_only({"encode", "decode"});
    encode = map->find("encode");
    decode = map->find("decode");
  }
  const ScalarMap encode_map(encode, decoded, encoded);
  auto codec = std::make_unique<CastValueCodec>(decoded, encoded,
                                                ScalarMap(decode, encoded, decoded), rules);
  // Shards fill chunks that are not stored with the encoded fill value.
  if (layout.fill_value.size() == decoded.itemsize) {
    std::vector<std::byte> fill(encoded.itemsize);
    try {
      cast_elements(layout.fill_value, decoded, fill, encoded, encode_map, rules);
    } catch (const Error& error) {
      throw configuration.error("the fill value cannot be cast: " + error.why());
    }
    if (layout.stored != nullptr) fill = rounded(*layout.stored, fill);
    layout.fill_value = std::move(fill);
  }
  layout.type = encoded;
  return codec;
}

}  // namespace batchfs
