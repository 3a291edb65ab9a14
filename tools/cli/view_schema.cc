#include "tools/cli/view_schema.h"

namespace batchfs {

std::string_view view_schema() {
  return R"json({
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "title": "batchfs view",
  "description": "The training batches of a Zarr store: see batchfs-view(5)",
  "type": "object",
  "properties": {
    "$schema": {"type": "string", "description": "This schema, for editors"},
    "name": {"$ref": "#/$defs/file_name", "description": "The view's directory in a mount"},
    "group": {"type": "string", "description": "The group of the store that variables are in; the root by default"},
    "sources": {
      "description": "Stores and groups that variables are of, as \"imerg:rain\"; those after the first are joined to it",
      "type": "object",
      "minProperties": 1,
      "maxProperties": 256,
      "propertyNames": {"$ref": "#/$defs/source_name"},
      "additionalProperties": {"$ref": "#/$defs/source"}
    },
    "mix": {
      "description": "The views that a mixture mixes, by name",
      "type": "object",
      "minProperties": 1,
      "maxProperties": 256,
      "propertyNames": {"$ref": "#/$defs/source_name"},
      "additionalProperties": {"anyOf": [{"$ref": "#/$defs/view_file"}, {"$ref": "#/$defs/component"}]}
    },
    "temperature": {"type": "number", "exclusiveMinimum": 0, "description": "Shares of a mixture are in the proportion of the 1 / T-th powers of those by weight"},
    "start": {
      "description": "How many samples of each view of a mixture were read before",
      "type": "object",
      "additionalProperties": {"type": "integer", "minimum": 0, "maximum": 1152921504606846976}
    },
    "level": {
      "description": "The level of an OME-Zarr image: its number, or the one nearest to a resolution",
      "anyOf": [{"type": "integer", "minimum": 0, "maximum": 1048576}, {"$ref": "#/$defs/level"}]
    },
    "variables": {"$ref": "#/$defs/names", "description": "Variables of the store; without \"tensors\", a tensor each"},
    "select": {
      "description": "The part of the store that the window slides over",
      "type": "object",
      "additionalProperties": {"$ref": "#/$defs/selector"}
    },
    "window": {
      "description": "The dimensions of a sample that slide; others stay whole",
      "type": "object",
      "minProperties": 1,
      "additionalProperties": {"anyOf": [{"$ref": "#/$defs/length"}, {"$ref": "#/$defs/window"}]}
    },
    "tensors": {
      "description": "The tensors of a batch, by name",
      "type": "object",
      "minProperties": 1,
      "propertyNames": {"$ref": "#/$defs/file_name"},
      "additionalProperties": {"$ref": "#/$defs/tensor"}
    },
    "batch": {
      "description": "Samples in a batch",
      "anyOf": [
        {"$ref": "#/$defs/batch_size"},
        {
          "type": "object",
          "properties": {
            "size": {"$ref": "#/$defs/batch_size"},
            "remainder": {"enum": ["keep", "drop", "pad"], "description": "A last batch that is not full"},
            "mixing": {"enum": ["sample", "stratified", "batch"], "description": "Which samples of a mixture are in one batch"},
            "block": {"type": "integer", "minimum": 1, "maximum": 16777216, "description": "Positions of a mixture that have exact quotas"}
          },
          "additionalProperties": false
        }
      ]
    },
    "order": {
      "description": "The order of samples in an epoch",
      "type": "object",
      "properties": {
        "shuffle": {"enum": ["none", "global", "block"]},
        "seed": {"type": "integer", "minimum": 0, "maximum": 9223372036854775807},
        "buffer": {"type": "integer", "minimum": 1, "maximum": 1048576, "description": "Groups of chunks in the shuffle buffer of \"block\""},
        "lanes": {"type": "integer", "minimum": 1, "maximum": 1048576, "description": "Parts of the order that batches come from in turn: the largest number of ranks"},
        "span": {
          "description": "Chunks of a group along a dimension, with \"block\"",
          "type": "object",
          "additionalProperties": {"$ref": "#/$defs/size"}
        },
        "home": {"type": "boolean", "description": "Each lane has the same chunks in every epoch"}
      },
      "if": {"required": ["home"], "properties": {"home": {"const": true}}},
      "then": {"required": ["lanes", "shuffle"], "properties": {"shuffle": {"const": "block"}}},
      "additionalProperties": false
    },
    "epochs": {
      "anyOf": [
        {"$ref": "#/$defs/epoch_count"},
        {
          "type": "object",
          "properties": {
            "count": {"$ref": "#/$defs/epoch_count"},
            "samples": {"type": "integer", "minimum": 1, "maximum": 1152921504606846976, "description": "Samples in an epoch; by default each once"}
          },
          "additionalProperties": false
        }
      ]
    },
    "samples": {
      "description": "Which windows are samples",
      "type": "object",
      "properties": {
        "spacing": {
          "description": "The step of times: a window across a missing date is no sample",
          "type": "object",
          "minProperties": 1,
          "additionalProperties": {"$ref": "#/$defs/duration"}
        },
        "where": {
          "description": "Labels that a window's start must have, by dimension",
          "type": "object",
          "properties": {"of": {"$ref": "#/$defs/of"}},
          "additionalProperties": {
            "anyOf": [
              {"$ref": "#/$defs/selector"},
              {"allOf": [{"$ref": "#/$defs/range_keys"}, {"minProperties": 1, "not": {"required": ["of"], "maxProperties": 1}}], "unevaluatedProperties": false, "properties": {"of": {"$ref": "#/$defs/of"}}}
            ]
          }
        },
        "mask": {
          "description": "Windows whose footprint holds enough marked cells of a variable",
          "type": "object",
          "required": ["variable"],
          "properties": {
            "variable": {"type": "string", "description": "Over dimensions of the window; a cell that is not 0 is marked"},
            "above": {"type": "number", "description": "A cell is marked if its value is more"},
            "below": {"type": "number", "description": "A cell is marked if its value is less"},
            "fraction": {
              "description": "The least and the most share of marked cells; [1, 1] by default",
              "type": "array",
              "items": {"type": "number", "minimum": 0, "maximum": 1},
              "minItems": 2,
              "maxItems": 2
            },
            "at": {"enum": ["center"], "description": "Only the cell in the middle of the window"}
          },
          "not": {"required": ["fraction", "at"]},
          "additionalProperties": false
        },
        "list": {"$ref": "#/$defs/file", "description": "A .npy or .csv file with a row for each sample"},
        "labels": {"$ref": "#/$defs/names", "description": "Columns of a .csv list that become tensors"},
        "anchor": {"enum": ["start", "center"], "description": "What of a window the list names"},
        "snap": {"enum": ["exact", "nearest"], "description": "Which labels stand for those of the list"},
        "tolerance": {
          "description": "How far away the nearest label may be",
          "anyOf": [
            {"$ref": "#/$defs/tolerance"},
            {"type": "object", "additionalProperties": {"$ref": "#/$defs/tolerance"}}
          ]
        },
        "weights": {
          "description": "How often each sample is drawn: a .npy file, a column of the list, or a variable of the store",
          "anyOf": [
            {"$ref": "#/$defs/file"},
            {"type": "object", "required": ["column"], "properties": {"column": {"type": "string"}}, "additionalProperties": false},
            {"type": "object", "required": ["variable"], "properties": {"variable": {"type": "string"}}, "additionalProperties": false}
          ]
        }
      },
      "dependentSchemas": {
        "list": {"properties": {"spacing": false, "where": false, "mask": false}},
        "tolerance": {"required": ["snap"], "properties": {"snap": {"const": "nearest"}}}
      },
      "dependentRequired": {"labels": ["list"], "anchor": ["list"], "snap": ["list"], "tolerance": ["list"]},
      "additionalProperties": false
    },
    "reserve": {
      "description": "Offsets that samples leave room for, by dimension",
      "type": "object",
      "additionalProperties": {"$ref": "#/$defs/offsets"}
    },
    "split": {
      "description": "Parts that share no position: a view each",
      "type": "object",
      "properties": {
        "parts": {
          "description": "The regions of each part, or \"rest\"",
          "type": "object",
          "minProperties": 1,
          "maxProperties": 100,
          "additionalProperties": {
            "anyOf": [
              {"const": "rest"},
              {
                "type": "array",
                "minItems": 1,
                "maxItems": 1000,
                "items": {"type": "object", "minProperties": 1, "additionalProperties": {"$ref": "#/$defs/selector"}}
              }
            ]
          }
        },
        "blocks": {
          "description": "Lengths of blocks that parts are drawn from",
          "type": "object",
          "minProperties": 1,
          "additionalProperties": {"$ref": "#/$defs/length"}
        },
        "groups": {
          "description": "Coordinates whose equal values stay together",
          "type": "object",
          "minProperties": 1,
          "additionalProperties": {"enum": ["value", "year", "month", "day", "season"]}
        },
        "fractions": {
          "description": "Of the blocks, for each part; they add up to 1",
          "type": "object",
          "minProperties": 1,
          "maxProperties": 100,
          "additionalProperties": {"type": "number", "exclusiveMinimum": 0, "maximum": 1}
        },
        "folds": {"type": "integer", "minimum": 2, "maximum": 100, "description": "For cross-validation"},
        "draw": {"enum": ["permute", "hash"], "description": "\"hash\": by the labels of a block alone"},
        "seed": {"type": "integer", "minimum": 0, "maximum": 9223372036854775807},
        "gap": {
          "description": "Distance that samples of two parts keep",
          "type": "object",
          "minProperties": 1,
          "additionalProperties": {"anyOf": [{"type": "integer", "minimum": 0, "maximum": 1099511627776}, {"$ref": "#/$defs/duration"}]}
        },
        "with": {
          "description": "Keys that differ in a part",
          "type": "object",
          "additionalProperties": {
            "type": "object",
            "properties": {
              "order": {"$ref": "#/properties/order"},
              "batch": {"$ref": "#/properties/batch"},
              "epochs": {"$ref": "#/properties/epochs"},
              "missing": {"$ref": "#/properties/missing"}
            },
            "additionalProperties": false
          }
        },
        "part": {"type": "string", "description": "This part alone, under the view's own name"}
      },
      "oneOf": [
        {"required": ["parts"], "properties": {"blocks": false, "groups": false, "fractions": false, "folds": false, "draw": false, "seed": false}},
        {"required": ["blocks", "fractions"], "properties": {"parts": false, "groups": false, "folds": false}},
        {"required": ["blocks", "folds"], "properties": {"parts": false, "groups": false, "fractions": false}},
        {"required": ["groups", "fractions"], "properties": {"parts": false, "blocks": false, "folds": false, "draw": {"const": "hash"}}},
        {"required": ["groups", "folds"], "properties": {"parts": false, "blocks": false, "fractions": false, "draw": {"const": "hash"}}}
      ],
      "additionalProperties": false
    },
    "dtype": {"enum": ["float16", "bfloat16", "float32", "float64"], "description": "The type of tensors of floats"},
    "normalize": {
      "type": "object",
      "required": ["method"],
      "properties": {
        "method": {"enum": ["zscore", "minmax", "robust", "log1p"]},
        "scale": {"type": "number", "exclusiveMinimum": 0, "description": "What log1p divides by"},
        "then": {"enum": ["zscore", "minmax", "robust"], "description": "What follows log1p"},
        "by": {"const": "tendency", "description": "zscore divides by the standard deviation of tendencies"},
        "statistics": {"type": ["string", "object"], "description": "A file of `batchfs statistics`, or its \"variables\""},
        "variables": {"$ref": "#/$defs/strings"},
        "except": {"$ref": "#/$defs/strings"}
      },
      "if": {"properties": {"method": {"const": "log1p"}}},
      "then": {"required": ["scale"], "if": {"required": ["then"]}, "then": {"required": ["statistics"]}, "else": {"properties": {"statistics": false}}},
      "else": {"required": ["statistics"], "properties": {"scale": false, "then": false}},
      "additionalProperties": false
    },
    "missing": {
      "type": "object",
      "properties": {
        "nan": {"enum": ["keep", "fill", "skip"], "description": "What becomes of NaN, or of samples with one"},
        "value": {"type": "number", "description": "In place of NaN, with \"fill\""},
        "at_most": {"type": "number", "minimum": 0, "maximum": 1, "description": "The share of NaN that a sample may have, with \"skip\""},
        "variables": {"$ref": "#/$defs/names", "description": "Tensors or variables whose NaN count, with \"skip\""}
      },
      "allOf": [
        {"if": {"required": ["value"]}, "then": {"properties": {"nan": {"const": "fill"}}, "required": ["nan"]}},
        {"if": {"anyOf": [{"required": ["at_most"]}, {"required": ["variables"]}]}, "then": {"properties": {"nan": {"const": "skip"}}, "required": ["nan"]}}
      ],
      "additionalProperties": false
    },
    "formats": {
      "description": "Files of each batch in a mount",
      "type": "array",
      "items": {"enum": ["npy", "safetensors", "npz", "zarr", "png"]},
      "minItems": 1,
      "uniqueItems": true
    },
    "xbatcher": {
      "description": "The arguments of xbatcher.BatchGenerator, instead of \"window\"",
      "type": "object",
      "required": ["input_dims"],
      "properties": {
        "input_dims": {"allOf": [{"$ref": "#/$defs/sizes"}, {"minProperties": 1}]},
        "input_overlap": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0, "maximum": 1099511627776}},
        "batch_dims": {"$ref": "#/$defs/sizes"},
        "concat_input_dims": {"type": "boolean"}
      },
      "additionalProperties": false
    }
  },
  "additionalProperties": false,
  "dependentSchemas": {
    "sources": {"properties": {"group": false, "level": false, "xbatcher": false}},
    "mix": {
      "properties": {
        "group": false, "level": false, "sources": false, "variables": false, "select": false, "window": false, "tensors": false,
        "dtype": false, "normalize": false, "missing": false, "samples": false, "reserve": false, "xbatcher": false, "split": false,
        "order": {"type": "object", "propertyNames": {"const": "seed"}}
      }
    }
  },
  "dependentRequired": {"temperature": ["mix"], "start": ["mix"]},
  "oneOf": [
    {"required": ["window"], "properties": {"batch": {"$ref": "#/$defs/unmixed"}}},
    {"required": ["xbatcher"], "properties": {"batch": false, "tensors": false, "split": false}},
    {"required": ["mix"]}
  ],
  "$defs": {
    "unmixed": {"not": {"type": "object", "anyOf": [{"required": ["mixing"]}, {"required": ["block"]}]}},
    "view_file": {"type": "string", "minLength": 1, "not": {"const": "-"}, "description": "The view's file, relative to the mixture's"},
    "share": {"type": "number", "minimum": 0},
    "component": {
      "type": "object",
      "required": ["view"],
      "properties": {
        "view": {"anyOf": [{"$ref": "#/$defs/view_file"}, {"allOf": [{"$ref": "#"}, {"not": {"required": ["mix"]}}]}]},
        "part": {"type": "string", "description": "The part of a view with \"split\""},
        "store": {"$ref": "#/$defs/source_name", "description": "The NAME of --store NAME=URL; else the command's own store"},
        "weight": {"$ref": "#/$defs/share", "description": "Its share is this, divided by the sum of all weights"},
        "repeat": {"$ref": "#/$defs/share", "description": "Times its own samples, an epoch"},
        "samples": {"type": "integer", "minimum": 0, "maximum": 1152921504606846976, "description": "Samples of an epoch"}
      },
      "additionalProperties": false,
      "dependentSchemas": {
        "weight": {"properties": {"repeat": false, "samples": false}},
        "repeat": {"properties": {"samples": false}}
      }
    },
    "source_name": {"type": "string", "minLength": 1, "maxLength": 64, "pattern": "^[A-Za-z0-9_.-]+$", "not": {"enum": [".", ".."]}},
    "source": {
      "type": "object",
      "properties": {
        "store": {"$ref": "#/$defs/source_name", "description": "The NAME of --store NAME=URL; else the command's own store"},
        "stores": {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1, "description": "Several stores one behind the other, in place of one"},
        "concat": {"type": "string", "description": "The dimension along which they lie one behind the other"},
        "prefer": {"enum": ["first", "last"], "description": "Which store has a label that is in several of them"},
        "group": {"type": "string", "description": "Its group; the root by default"},
        "join": {"type": "object", "description": "How its dimensions lie along those of the first source", "additionalProperties": {"$ref": "#/$defs/join"}}
      },
      "dependentSchemas": {"stores": {"properties": {"store": false}}},
      "additionalProperties": false
    },
    "pick": {"enum": ["exact", "nearest", "last", "next"], "description": "Which label of the source stands for one of the first"},
    "join": {
      "anyOf": [
        {"$ref": "#/$defs/pick"},
        {
          "type": "object",
          "properties": {
            "pick": {"$ref": "#/$defs/pick"},
            "tolerance": {"anyOf": [{"type": "number", "minimum": 0}, {"$ref": "#/$defs/duration"}], "description": "How far away the label may be, included"},
            "missing": {"enum": ["drop", "pad"], "description": "Windows that need a label without a match: no samples, or padded"},
            "ratio": {"type": "integer", "minimum": 2, "maximum": 4096, "description": "Cells of a finer grid for each cell of the first source"},
            "as": {"type": "string", "description": "The dimension of the first source, if it has another name"}
          },
          "dependentSchemas": {"ratio": {"properties": {"pick": false, "tolerance": false}}},
          "additionalProperties": false
        }
      ]
    },
    "file_name": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[^/\\u0000]+$", "not": {"enum": [".", ".."]}},
    "file": {
      "anyOf": [
        {"type": "string", "minLength": 1},
        {
          "type": "object",
          "required": ["file"],
          "properties": {
            "file": {"type": "string", "minLength": 1, "description": "Its name, relative to the view's file"},
            "digest": {"type": "string", "description": "What the file must be, as view.json of a mount has it"}
          },
          "additionalProperties": false
        }
      ]
    },
    "tolerance": {"type": ["string", "number"]},
    "strings": {"type": "array", "items": {"type": "string"}},
    "names": {"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": true},
    "size": {"type": "integer", "minimum": 1, "maximum": 1099511627776},
    "duration": {"type": "string", "pattern": "^[+-]?[0-9]+(y|mo|w|W|d|D|h|min|m|s|ms|us|ns)$", "description": "A length of time: \"6h\", \"1mo\""},
    "length": {"anyOf": [{"$ref": "#/$defs/size"}, {"$ref": "#/$defs/duration"}]},
    "offsets": {
      "anyOf": [
        {"type": "array", "items": {"type": "integer", "minimum": -1099511627776, "maximum": 1099511627776}, "minItems": 1},
        {"type": "array", "items": {"$ref": "#/$defs/duration"}, "minItems": 1, "maxItems": 1024}
      ]
    },
    "of": {"enum": ["start", "footprint"], "description": "Which labels of a window"},
    "epoch_count": {"type": "integer", "minimum": 1, "maximum": 1000000000},
    "sizes": {"type": "object", "additionalProperties": {"$ref": "#/$defs/size"}},
    "batch_size": {"type": "integer", "minimum": 1, "maximum": 16777216},
    "level": {
      "type": "object",
      "required": ["resolution"],
      "properties": {
        "resolution": {
          "description": "The distance of pixels by axis, as \"0.5 um\"",
          "type": "object",
          "minProperties": 1,
          "additionalProperties": {
            "anyOf": [
              {"type": "number", "exclusiveMinimum": 0},
              {"type": "string", "pattern": "^[0-9.]+([eE][+-]?[0-9]+)? *[^ 0-9]*$"}
            ]
          }
        }
      },
      "additionalProperties": false
    },
    "window": {
      "type": "object",
      "required": ["size"],
      "properties": {
        "size": {"$ref": "#/$defs/length"},
        "stride": {"$ref": "#/$defs/length", "description": "From one window to the next; the size by default"},
        "wrap": {"type": "boolean", "description": "The dimension is cyclic"},
        "edge": {"enum": ["drop", "pad", "partial"], "description": "A last window that does not fit"},
        "pad_value": {"type": "number"}
      },
      "additionalProperties": false
    },
    "tensor": {
      "type": "object",
      "required": ["variables"],
      "properties": {
        "variables": {
          "description": "Variables of the store, and channels that are made",
          "type": "array",
          "items": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/made"}]},
          "minItems": 1,
          "uniqueItems": true
        },
        "offsets": {
          "type": "object",
          "additionalProperties": {"$ref": "#/$defs/offsets"}
        },
        "stack": {"type": "string", "minLength": 1, "description": "The dimension that joins the variables"},
        "dims": {"$ref": "#/$defs/names"},
        "broadcast": {"type": "boolean", "description": "Repeat variables along dimensions that they lack"}
      },
      "if": {"properties": {"variables": {"minItems": 2}}},
      "then": {"required": ["stack"]},
      "additionalProperties": false
    },
    "made": {
      "description": "A channel of time and place, or of other variables",
      "type": "object",
      "required": ["make"],
      "properties": {
        "make": {
          "enum": [
            "sin_latitude", "cos_latitude", "sin_longitude", "cos_longitude",
            "sin_julian_day", "cos_julian_day", "sin_local_time", "cos_local_time",
            "year_progress", "sin_year_progress", "cos_year_progress",
            "day_progress", "sin_day_progress", "cos_day_progress",
            "year_progress_sin", "year_progress_cos", "day_progress_sin", "day_progress_cos",
            "cos_zenith", "insolation", "toa_radiation", "constant",
            "hypot", "wind_speed", "sum", "difference", "product", "ratio"
          ]
        },
        "name": {"type": "string", "minLength": 1, "description": "Of the channel; by default what is made"},
        "of": {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 64, "description": "The variables that it is made of"},
        "value": {"type": "number", "description": "Of a constant"},
        "mean": {"$ref": "#/$defs/duration", "description": "The mean of so long before each time"},
        "time": {"type": "string", "description": "The dimension that has the times"},
        "units": {"const": "degrees", "description": "Of latitudes and longitudes that have none"}
      },
      "allOf": [
        {"if": {"properties": {"make": {"const": "constant"}}}, "then": {"required": ["value"]}, "else": {"properties": {"value": false}}},
        {"if": {"properties": {"make": {"enum": ["hypot", "wind_speed", "difference", "ratio"]}}}, "then": {"required": ["of"], "properties": {"of": {"maxItems": 2}}}},
        {"if": {"properties": {"make": {"enum": ["sum", "product"]}}}, "then": {"required": ["of"]}},
        {"if": {"not": {"properties": {"make": {"enum": ["hypot", "wind_speed", "sum", "difference", "product", "ratio"]}}}}, "then": {"properties": {"of": false}}},
        {"if": {"not": {"properties": {"make": {"enum": ["insolation", "toa_radiation"]}}}}, "then": {"properties": {"mean": false}}}
      ],
      "additionalProperties": false
    },
    "label": {"type": ["string", "number", "boolean"], "description": "A label, or a position as \"#3\""},
    "selector": {
      "anyOf": [
        {"$ref": "#/$defs/selector_part"},
        {"type": "array", "items": {"$ref": "#/$defs/selector_part"}, "minItems": 1}
      ]
    },
    "selector_part": {
      "anyOf": [{"$ref": "#/$defs/label"}, {"$ref": "#/$defs/range"}, {"$ref": "#/$defs/nearest"}]
    },
    "range": {"$ref": "#/$defs/range_keys", "unevaluatedProperties": false},
    "range_keys": {
      "type": "object",
      "properties": {
        "from": {"type": ["string", "number", "boolean", "null"], "description": "The first label, or position as \"#3\""},
        "to": {"type": ["string", "number", "boolean", "null"], "description": "The last label, included; or a position, not included"},
        "wrap": {"type": "boolean", "description": "Continue at the beginning of a cyclic coordinate"},
        "step": {"type": "integer", "minimum": 1, "maximum": 1099511627776},
        "year": {"$ref": "#/$defs/years"},
        "month": {"$ref": "#/$defs/months"},
        "day": {"$ref": "#/$defs/days"},
        "hour": {"$ref": "#/$defs/hours"},
        "minute": {"$ref": "#/$defs/minutes"},
        "weekday": {"$ref": "#/$defs/weekdays"},
        "dayofyear": {"$ref": "#/$defs/days_of_year"},
        "season": {"$ref": "#/$defs/seasons"}
      }
    },
    "nearest": {
      "type": "object",
      "required": ["nearest"],
      "properties": {
        "nearest": {
          "anyOf": [{"$ref": "#/$defs/label"}, {"type": "array", "items": {"$ref": "#/$defs/label"}, "minItems": 1}]
        },
        "tolerance": {"type": ["string", "number"], "description": "How far away the label may be; \"6h\" for times"}
      },
      "additionalProperties": false
    },
    "year": {"type": "integer", "minimum": -1000000000, "maximum": 1000000000},
    "years": {"anyOf": [{"$ref": "#/$defs/year"}, {"type": "array", "items": {"$ref": "#/$defs/year"}, "minItems": 1}]},
    "month": {"type": "integer", "minimum": 1, "maximum": 12},
    "months": {"anyOf": [{"$ref": "#/$defs/month"}, {"type": "array", "items": {"$ref": "#/$defs/month"}, "minItems": 1}]},
    "day": {"type": "integer", "minimum": 1, "maximum": 31},
    "days": {"anyOf": [{"$ref": "#/$defs/day"}, {"type": "array", "items": {"$ref": "#/$defs/day"}, "minItems": 1}]},
    "hour": {"type": "integer", "minimum": 0, "maximum": 23},
    "hours": {"anyOf": [{"$ref": "#/$defs/hour"}, {"type": "array", "items": {"$ref": "#/$defs/hour"}, "minItems": 1}]},
    "minute": {"type": "integer", "minimum": 0, "maximum": 59},
    "minutes": {"anyOf": [{"$ref": "#/$defs/minute"}, {"type": "array", "items": {"$ref": "#/$defs/minute"}, "minItems": 1}]},
    "weekday": {"type": "integer", "minimum": 0, "maximum": 6, "description": "0 is Monday"},
    "weekdays": {"anyOf": [{"$ref": "#/$defs/weekday"}, {"type": "array", "items": {"$ref": "#/$defs/weekday"}, "minItems": 1}]},
    "day_of_year": {"type": "integer", "minimum": 1, "maximum": 366},
    "days_of_year": {"anyOf": [{"$ref": "#/$defs/day_of_year"}, {"type": "array", "items": {"$ref": "#/$defs/day_of_year"}, "minItems": 1}]},
    "season": {"enum": ["DJF", "MAM", "JJA", "SON"]},
    "seasons": {"anyOf": [{"$ref": "#/$defs/season"}, {"type": "array", "items": {"$ref": "#/$defs/season"}, "minItems": 1}]}
  }
}
)json";
}

}  // namespace batchfs
