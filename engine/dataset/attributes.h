#pragma once
// Attributes as xarray shows them once it has decoded the values.

#include "engine/dataset/dataset.h"

namespace batchfs {

/// The attributes that describe a variable's decoded values: without those that describe their
/// stored form (_FillValue, scale_factor, units of times that are decoded), which xarray keeps in
/// `encoding`. Times that are numbers, since datetime64 cannot hold them, keep units and calendar:
/// xarray decodes them to objects of cftime.
Json decoded_attributes(const Variable& variable);
/// For values decoded by `cf`, which may not be the variable's own: see Dataset::Index.
Json decoded_attributes(const Variable& variable, const CfDecoding& cf);

}  // namespace batchfs
