#include "engine/zarr/ome/units.h"

#include <string>

#include "engine/base/strings.h"

namespace batchfs {

namespace {

using Of = UnitSize::Of;

struct UnitPrefix {
  std::string_view name, symbol;
  double factor;
};
constexpr UnitPrefix kUnitPrefixes[] = {
    {"", "", 1},
    {"yotta", "Y", 1e24},
    {"zetta", "Z", 1e21},
    {"exa", "E", 1e18},
    {"peta", "P", 1e15},
    {"tera", "T", 1e12},
    {"giga", "G", 1e9},
    {"mega", "M", 1e6},
    {"kilo", "k", 1e3},
    {"hecto", "h", 1e2},
    {"deca", "da", 1e1},
    {"deci", "d", 1e-1},
    {"centi", "c", 1e-2},
    {"milli", "m", 1e-3},
    {"micro", "u", 1e-6},
    {"micro", "\u00b5", 1e-6},
    {"micro", "\u03bc", 1e-6},
    {"nano", "n", 1e-9},
    {"pico", "p", 1e-12},
    {"femto", "f", 1e-15},
    {"atto", "a", 1e-18},
    {"zepto", "z", 1e-21},
    {"yocto", "y", 1e-24},
};

struct NamedUnit {
  std::string_view name, symbol;
  UnitSize size;
};
constexpr NamedUnit kNamedUnits[] = {
    {"angstrom", "A", {Of::length, 1e-10}},
    {"angstrom", "\u00c5", {Of::length, 1e-10}},
    {"inch", "in", {Of::length, 0.0254}},
    {"foot", "ft", {Of::length, 0.3048}},
    {"yard", "yd", {Of::length, 0.9144}},
    {"mile", "mi", {Of::length, 1609.344}},
    {"parsec", "pc", {Of::length, 3.0856775814913673e16}},
    {"minute", "min", {Of::time, 60}},
    {"hour", "h", {Of::time, 3600}},
    {"day", "d", {Of::time, 86400}},
};

}  // namespace

std::optional<UnitSize> unit_size(std::string_view unit) {
  for (const NamedUnit& named : kNamedUnits)
    if (unit == named.symbol) return named.size;
  for (const UnitPrefix& prefix : kUnitPrefixes) {
    if (!unit.starts_with(prefix.symbol)) continue;
    const std::string_view base = unit.substr(prefix.symbol.size());
    if (base == "m") return UnitSize{Of::length, prefix.factor};
    if (base == "s") return UnitSize{Of::time, prefix.factor};
  }
  std::string name = to_lower(std::string(unit));
  if (name.ends_with('s')) name.pop_back();
  for (const NamedUnit& named : kNamedUnits)
    if (name == named.name) return named.size;
  for (const UnitPrefix& prefix : kUnitPrefixes) {
    if (!name.starts_with(prefix.name)) continue;
    const std::string_view base = std::string_view(name).substr(prefix.name.size());
    if (base == "meter" || base == "metre") return UnitSize{Of::length, prefix.factor};
    if (base == "second") return UnitSize{Of::time, prefix.factor};
  }
  return std::nullopt;
}

}  // namespace batchfs
