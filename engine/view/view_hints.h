#pragma once
// Keys and values of other loaders (PyTorch, TensorFlow, xbatcher, xarray), each with a view's
// equivalent.

#include "engine/base/key_hints.h"

namespace batchfs::view_hints {

inline constexpr KeyHint kView[] = {
    {"batch_size", "write \"batch\": {\"size\": 32}"},
    {"size", "write \"batch\": {\"size\": 32}"},
    {"drop_last", "write \"batch\": {\"size\": 32, \"remainder\": \"drop\"}"},
    {"drop_remainder", "write \"batch\": {\"size\": 32, \"remainder\": \"drop\"}"},
    {"remainder", "write \"batch\": {\"size\": 32, \"remainder\": \"drop\"}"},
    {"shuffle", "write \"order\": {\"shuffle\": \"global\", \"seed\": 0}"},
    {"seed", "write \"order\": {\"shuffle\": \"global\", \"seed\": 0}"},
    {"train_test_split",
     "write \"split\": {\"blocks\": {\"time\": \"30d\"}, \"fractions\": "
     "{\"train\": 0.8, \"val\": 0.2}}"},
    {"sampler", "write \"order\": {\"shuffle\": \"global\", \"seed\": 0}"},
    {"num_workers", "there are no workers; --threads of the command sets how many threads decode"},
    {"workers", "there are no workers; --threads of the command sets how many threads decode"},
    {"threads", "--threads of the command sets how many threads decode"},
    {"prefetch",
     "batches are made ahead of the reader in any case, as --memory of the command allows"},
    {"prefetch_factor",
     "batches are made ahead of the reader in any case, as --memory of the command allows"},
    {"pin_memory", "the reader chooses its memory; leave the key out"},
    {"collate_fn",
     "samples are stacked along a first dimension 'sample'; other changes belong to the training "
     "program"},
    {"transform",
     "a view has \"normalize\", \"missing\" and \"dtype\"; other transforms belong to the training "
     "program"},
    {"transforms",
     "a view has \"normalize\", \"missing\" and \"dtype\"; other transforms belong to the training "
     "program"},
    {"preprocess",
     "a view has \"normalize\", \"missing\" and \"dtype\"; other transforms belong to the training "
     "program"},
    {"fill_value", "write \"missing\": {\"nan\": \"fill\", \"value\": 0}"},
    {"fillna", "write \"missing\": {\"nan\": \"fill\", \"value\": 0}"},
    {"dropna", "write \"missing\": {\"nan\": \"skip\"}"},
    {"overlap", "write it per dimension: \"window\": {\"time\": {\"size\": 8, \"stride\": 4}}"},
    {"stride", "write it per dimension: \"window\": {\"time\": {\"size\": 8, \"stride\": 4}}"},
    {"step", "write it per dimension: \"window\": {\"time\": {\"size\": 8, \"stride\": 4}}"},
    {"patch_size", "write it per dimension: \"window\": {\"latitude\": 48, \"longitude\": 48}"},
    {"where", "it belongs to \"samples\": {\"where\": {\"time\": {\"month\": [6, 7, 8]}}}"},
    {"mask", "it belongs to \"samples\": {\"mask\": {\"variable\": \"land_sea_mask\"}}"},
    {"spacing", "it belongs to \"samples\": {\"spacing\": {\"time\": \"6h\"}}"},
    {"list", "it belongs to \"samples\": {\"list\": \"samples.csv\"}"},
    {"sel", "labels and positions are chosen with \"select\""},
    {"isel",
     "positions are chosen with \"select\": {\"time\": {\"from\": \"#0\", \"to\": \"#9\"}}"},
    {"data_vars", "write \"variables\": [\"t2m\"]"},
    {"vars", "write \"variables\": [\"t2m\"]"},
    {"features", "write \"tensors\": {\"x\": {\"variables\": [\"t2m\"]}}"},
    {"inputs", "write \"tensors\": {\"x\": {\"variables\": [\"t2m\"]}}"},
    {"targets",
     "write \"tensors\": {\"y\": {\"variables\": [\"t2m\"], \"offsets\": {\"time\": [1]}}}"},
    {"offsets",
     "they belong to a tensor: \"tensors\": {\"y\": {\"variables\": [\"t2m\"], \"offsets\": "
     "{\"time\": [1]}}}"},
    {"stack",
     "it belongs to a tensor: \"tensors\": {\"x\": {\"variables\": [\"u\", \"v\"], \"stack\": "
     "\"channel\"}}"},
    {"input_dims", "xbatcher's arguments stand in \"xbatcher\": {\"input_dims\": {...}}"},
    {"input_overlap", "xbatcher's arguments stand in \"xbatcher\": {\"input_overlap\": {...}}"},
    {"batch_dims", "xbatcher's arguments stand in \"xbatcher\": {\"batch_dims\": {...}}"},
    {"type", "write \"dtype\": \"float32\""},
    {"precision", "write \"dtype\": \"float32\""},
    {"store", "the store is given to the command, not in the view"},
    {"path", "the store is given to the command, not in the view"},
    {"group", "name the group in the store's path: store.zarr/group"},
    {"comment", "comments of a view are // ... and /* ... */"},
    {"_comment", "comments of a view are // ... and /* ... */"},
    {"//", "comments of a view are // ... and /* ... */"},
    {"description", "comments of a view are // ... and /* ... */"},
};

inline constexpr KeyHint kWindow[] = {
    {"overlap", "write \"stride\": the size less the overlap"},
    {"step", "write \"stride\""},
    {"length", "write \"size\""},
    {"len", "write \"size\""},
    {"width", "write \"size\""},
    {"start", "limits of a dimension belong to \"select\": {\"time\": {\"from\": A, \"to\": B}}"},
    {"stop", "limits of a dimension belong to \"select\": {\"time\": {\"from\": A, \"to\": B}}"},
    {"from", "limits of a dimension belong to \"select\": {\"time\": {\"from\": A, \"to\": B}}"},
    {"to", "limits of a dimension belong to \"select\": {\"time\": {\"from\": A, \"to\": B}}"},
    {"offset",
     "offsets belong to a tensor: \"tensors\": {\"y\": {\"variables\": [\"t2m\"], \"offsets\": "
     "{\"time\": [1]}}}"},
    {"offsets",
     "they belong to a tensor: \"tensors\": {\"y\": {\"variables\": [\"t2m\"], \"offsets\": "
     "{\"time\": [1]}}}"},
    {"cyclic", "write \"wrap\": true"},
    {"periodic", "write \"wrap\": true"},
    {"circular", "write \"wrap\": true"},
    {"padding", "write \"edge\": \"pad\""},
    {"pad", "write \"edge\": \"pad\""},
    {"drop_last", "write \"edge\": \"drop\", which is the default"},
};

inline constexpr KeyHint kEdges[] = {
    {"wrap", "write \"wrap\": true, without \"edge\""},
    {"cyclic", "write \"wrap\": true, without \"edge\""},
    {"periodic", "write \"wrap\": true, without \"edge\""},
    {"circular", "write \"wrap\": true, without \"edge\""},
    {"fill", "write \"pad\""},
    {"zero", "write \"pad\", \"pad_value\": 0"},
    {"skip", "write \"drop\""},
    {"keep", "write \"partial\""},
};

inline constexpr KeyHint kBatch[] = {
    {"batch_size", "write \"size\""},
    {"samples", "write \"size\""},
    {"drop_last", "write \"remainder\": \"drop\""},
    {"drop_remainder", "write \"remainder\": \"drop\""},
    {"drop", "write \"remainder\": \"drop\""},
    {"pad", "write \"remainder\": \"pad\""},
    {"shuffle", "it belongs to \"order\": {\"shuffle\": \"global\", \"seed\": 0}"},
    {"seed", "it belongs to \"order\": {\"shuffle\": \"global\", \"seed\": 0}"},
};

inline constexpr KeyHint kOrder[] = {
    {"type", "write \"shuffle\": \"global\""},
    {"method", "write \"shuffle\": \"global\""},
    {"mode", "write \"shuffle\": \"global\""},
    {"random", "write \"shuffle\": \"global\""},
    {"random_state", "write \"seed\""},
    {"epochs", "it stands beside \"order\", not in it"},
    {"window", "write \"buffer\""},
    {"buffer_size", "write \"buffer\""},
    {"world", "the world is the readers'; write \"lanes\": the largest world that will be used"},
    {"num_canonical_nodes", "write \"lanes\": the largest number of ranks that will be used"},
    {"samples", "write \"epochs\": {\"count\": 1, \"samples\": 100000}"},
};

inline constexpr KeyHint kEpochs[] = {
    {"number", "write \"count\""},
    {"epochs", "write \"count\""},
    {"length", "write \"samples\""},
    {"size", "write \"samples\""},
    {"batches", "write \"samples\": the batches times their size"},
};

inline constexpr KeyHint kTensor[] = {
    {"vars", "write \"variables\""},
    {"channels", "variables are joined with \"stack\": \"channel\""},
    {"repeat", "write \"broadcast\": true"},
    {"expand", "write \"broadcast\": true"},
    {"lag", "write \"offsets\": {\"time\": [-1]}"},
    {"lags", "write \"offsets\": {\"time\": [-1, 0]}"},
    {"lead", "write \"offsets\": {\"time\": [1]}"},
    {"leads", "write \"offsets\": {\"time\": [1, 2]}"},
    {"shift", "write \"offsets\": {\"time\": [1]}"},
    {"select", "a selection is for all tensors: it stands beside \"tensors\""},
    {"window", "a window is for all tensors: it stands beside \"tensors\""},
    {"dtype", "the type is one for all tensors: it stands beside \"tensors\""},
    {"normalize", "it is one for all tensors: it stands beside \"tensors\""},
};

inline constexpr KeyHint kSamples[] = {
    {"size", "write \"batch\": {\"size\": 32}"},
    {"count", "write \"batch\": {\"size\": 32}"},
    {"frequency", "write \"spacing\": {\"time\": \"6h\"}"},
    {"freq", "write \"spacing\": {\"time\": \"6h\"}"},
    {"step", "write \"spacing\": {\"time\": \"6h\"}"},
    {"filter", "write \"where\", or \"mask\" for a variable of the store"},
    {"region", "write \"mask\": {\"variable\": \"land_sea_mask\"}"},
};

inline constexpr KeyHint kSplit[] = {
    {"train", "write \"parts\": {\"train\": \"rest\"}, or \"fractions\": {\"train\": 0.8}"},
    {"val", "write \"parts\": {\"val\": [{\"time\": {\"from\": \"2016\"}}]}"},
    {"test", "write \"parts\": {\"test\": [{\"time\": {\"from\": \"2016\"}}]}"},
    {"test_size", "write \"fractions\": {\"train\": 0.8, \"test\": 0.2}"},
    {"train_size", "write \"fractions\": {\"train\": 0.8, \"test\": 0.2}"},
    {"random_state", "write \"seed\""},
    {"n_splits", "write \"folds\""},
    {"k", "write \"folds\""},
    {"buffer", "write \"gap\""},
    {"embargo", "write \"gap\""},
    {"regions", "write \"parts\""},
    {"shuffle", "write \"draw\": \"permute\" or \"hash\""},
};

inline constexpr KeyHint kMissing[] = {
    {"fill_value", "write \"nan\": \"fill\", \"value\": 0"},
    {"fill", "write \"nan\": \"fill\", \"value\": 0"},
    {"skip", "write \"nan\": \"skip\""},
    {"fraction", "write \"at_most\": the share of NaN that a sample may have"},
    {"threshold", "write \"at_most\": the share of NaN that a sample may have"},
    {"tensors", "write \"variables\": they may name tensors"},
    {"drop", "write \"nan\": \"skip\""},
};

inline constexpr KeyHint kMissingValues[] = {
    {"drop", "write \"skip\""},
    {"zero", "write \"fill\""},
    {"replace", "write \"fill\""},
};

inline constexpr KeyHint kTypes[] = {
    {"float", "write \"float32\""},
    {"single", "write \"float32\""},
    {"f4", "write \"float32\""},
    {"<f4", "write \"float32\""},
    {"fp32", "write \"float32\""},
    {"double", "write \"float64\""},
    {"f8", "write \"float64\""},
    {"<f8", "write \"float64\""},
    {"fp64", "write \"float64\""},
    {"half", "write \"float16\""},
    {"f2", "write \"float16\""},
    {"<f2", "write \"float16\""},
    {"fp16", "write \"float16\""},
    {"bf16", "write \"bfloat16\""},
    {"torch.float32", "write \"float32\""},
    {"torch.float16", "write \"float16\""},
    {"torch.bfloat16", "write \"bfloat16\""},
    {"torch.float64", "write \"float64\""},
    {"int", "only tensors of floats are cast; integers stay as they are"},
    {"int32", "only tensors of floats are cast; integers stay as they are"},
    {"int64", "only tensors of floats are cast; integers stay as they are"},
};

inline constexpr KeyHint kShuffles[] = {
    {"random", "write \"global\""},
    {"full", "write \"global\""},
    {"true", "write \"global\", or \"block\", which reads chunks less often"},
    {"yes", "write \"global\""},
    {"false", "write \"none\""},
    {"no", "write \"none\""},
    {"sequential", "write \"none\""},
    {"local", "write \"block\""},
    {"chunk", "write \"block\""},
    {"chunks", "write \"block\""},
};

inline constexpr KeyHint kFormats[] = {
    {"numpy", "write \"npy\""},
    {".npy", "write \"npy\""},
    {"safetensor", "write \"safetensors\""},
    {"torch", "torch reads \"npy\" and \"safetensors\""},
    {"pt", "torch reads \"npy\" and \"safetensors\""},
    {"hdf5", "xarray reads \"zarr\""},
    {"netcdf", "xarray reads \"zarr\""},
    {"nc", "xarray reads \"zarr\""},
};

inline constexpr KeyHint kRemainders[] = {
    {"true", "write \"keep\", \"drop\" or \"pad\""},
    {"drop_last", "write \"drop\""},
    {"skip", "write \"drop\""},
    {"fill", "write \"pad\""},
};

}  // namespace batchfs::view_hints
