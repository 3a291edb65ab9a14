#pragma once
/* batchfs_writer.h: a model's predictions into a Zarr store, for C and whatever calls C.
 *
 *   char error[BATCHFS_WRITER_ERROR_SIZE];
 *   batchfs_writer_options options = {sizeof options};
 *   options.overlap = "cosine";
 *   batchfs_writer* writer;
 *   batchfs_writer_create("era5.zarr", "view.json", "out.zarr", &options, &writer, error);
 *
 *   for each batch that batchfs_writer_remaining() names:
 *     batchfs_writer_write(writer, "y", samples, count, values, "float32", NULL, error);
 *
 *   batchfs_writer_close(writer, error);
 *   batchfs_writer_free(writer);
 *
 * The output has an array for each variable of the tensors that are predicted, with the dimensions,
 * coordinates and attributes of what the view selects; each prediction goes to the place of its
 * sample. It is a local folder, and becomes a Zarr store (format 3) when the last rank is closed.
 * A program that was killed continues its output: the same call of batchfs_writer_create gives the
 * batches that are missing, and the output becomes the same.
 *
 * Functions that can fail return 0, or an errno value; `error` then has the reason, with what to do
 * about it, as UTF-8 that ends in NUL, in at most BATCHFS_WRITER_ERROR_SIZE bytes. `error` may be
 * NULL; after success it is an empty text. Calls on one writer may come from several threads, but
 * for batchfs_writer_free, which is the last one. A child of fork() must not use the writer. Link
 * with -lbatchfs_writer.
 */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define BATCHFS_WRITER_API __attribute__((visibility("default")))
#else
#define BATCHFS_WRITER_API
#endif

#define BATCHFS_WRITER_VERSION_MAJOR 0
#define BATCHFS_WRITER_VERSION_MINOR 2
#define BATCHFS_WRITER_VERSION_PATCH 0

/* Bytes of the buffers that error texts are written to. */
#define BATCHFS_WRITER_ERROR_SIZE 2048

typedef struct batchfs_writer batchfs_writer;

/* All zero is the default of everything but size. The struct may grow at its end: the library reads
 * no more than `size`. Texts and lists are copied. */
typedef struct batchfs_writer_options {
  size_t size;                /* sizeof(batchfs_writer_options) */
  const char* part;           /* of a view with "split": "test" */
  const char* const* tensors; /* names of the tensors that are predicted, ended by NULL. By default
                                 (NULL) the view's only one, or "y", or all */
  const char* name;           /* of the array, where there is one; NULL: as the variable */
  const char* const* names;   /* pairs: a variable, and what its array is called; ended by NULL */
  const char* overlap; /* where windows overlap: "error" (NULL) refuses; "trim", "mean", "cosine",
                          "last" */
  const char* time;    /* "valid" (NULL), or "lead": dimensions init_time and lead_time */
  const char* reduce;  /* "window": a prediction is one number for each sample; NULL */
  const char* dtype;   /* of the arrays, as numpy names it; NULL: the tensor's */
  const char* chunks;  /* elements, "time=1,latitude=721"; -1: all. NULL: up to 4 MB */
  const char* shards;  /* the same, whole numbers of chunks; NULL: none */
  const char* codec;   /* "zstd" (NULL), "zstd:9", "blosc", "gzip", "none" */
  int32_t denormalize; /* not 0: undo the view's "normalize" */
  int32_t threads;     /* that encode; 0: up to 4 */
  uint64_t memory;     /* bytes of values that wait for the rest of their chunk; 0: 1 GiB */
  int64_t rank;        /* rank R of W is this process; each has its own */
  int64_t world;       /* 0 or 1: the only one */
  int64_t epoch;       /* whose samples the output has */
  const char* const* store_options; /* of the command line, ended by NULL: "--anon",
                                       "--endpoint=http://localhost:9000", "--group=forecast" */
} batchfs_writer_options;

/* "0.2.0": of the library that the program runs with. */
BATCHFS_WRITER_API const char* batchfs_writer_version(void);

/* Begins an output, or continues it. `view` is the name of a view file, or the text of one, which
 * begins with '{': files that it names are then relative to the working directory. `output` is a
 * new folder, or one that the same call began. `options` may be NULL. EINVAL for arguments that do
 * not fit, for an output of another run, and for a rank that another process writes. `*writer` is
 * NULL after a failure. */
BATCHFS_WRITER_API int batchfs_writer_create(const char* store, const char* view,
                                             const char* output,
                                             const batchfs_writer_options* options,
                                             batchfs_writer** writer, char* error);

/* Writes what was made for `count` samples of these numbers (as batchfs_batch_samples and
 * batchfs_writer_batch_samples give them): an array with the shape of the tensor in their batch,
 * samples first, or with reduce="window" of one number for each. `tensor` may be NULL where one is
 * predicted. `dtype` is numpy's name ("float32"), or "bfloat16". `strides` are bytes from one
 * element to the next along each dimension, samples first, of any sign; NULL: C order. `values` is
 * host memory, copied before the call returns. A sample is written once: what is passed for it
 * again must be the same values. Waits while chunks wait to be encoded. Fails with what an earlier
 * call has failed with: errors of other threads come up here and at close. */
BATCHFS_WRITER_API int batchfs_writer_write(batchfs_writer* writer, const char* tensor,
                                            const int64_t* samples, size_t count,
                                            const void* values, const char* dtype,
                                            const int64_t* strides, char* error);

/* The numbers of this rank's batches (R, R + W, ...) with samples that the output lacks, ascending:
 * all of a new output. Sets `*count` to how many there are, and writes at most `capacity` of them
 * to `batches`, which may be NULL with a capacity of 0. */
BATCHFS_WRITER_API int batchfs_writer_remaining(batchfs_writer* writer, int64_t* batches,
                                                size_t capacity, size_t* count, char* error);

/* The numbers of a batch's samples, in the order of its rows; as batchfs_writer_remaining. */
BATCHFS_WRITER_API int batchfs_writer_batch_samples(batchfs_writer* writer, int64_t batch,
                                                    int64_t* samples, size_t capacity,
                                                    size_t* count, char* error);

/* The shape of what batchfs_writer_write takes for these samples of a batch; `shape`, `capacity`
 * and `count` as of batchfs_writer_remaining. Only at the edge of a dimension do batches differ. */
BATCHFS_WRITER_API int batchfs_writer_shape(batchfs_writer* writer, const char* tensor,
                                            const int64_t* samples, size_t samples_count,
                                            int64_t* shape, size_t capacity, size_t* count,
                                            char* error);

/* The numbers of all samples of the epoch, ascending; as batchfs_writer_remaining. */
BATCHFS_WRITER_API int batchfs_writer_samples(batchfs_writer* writer, int64_t* samples,
                                              size_t capacity, size_t* count, char* error);

/* Where the windows of these samples begin: of each one number for each dimension that windows move
 * along, as batchfs_writer_describe names them; as batchfs_writer_remaining. */
BATCHFS_WRITER_API int batchfs_writer_starts(batchfs_writer* writer, int64_t* starts,
                                             size_t capacity, size_t* count, char* error);

/* For each of these samples 1 if the output has it, 0 if batchfs_writer_missing counts it. Arguments
 * as for batchfs_writer_remaining. */
BATCHFS_WRITER_API int batchfs_writer_done(batchfs_writer* writer, uint8_t* done, size_t capacity,
                                           size_t* count, char* error);

/* The output's description, as JSON: {"dims": ["time"], "arrays": [{"name": "t2m", "tensor": "y",
 * "tensor_dims": ["sample", "time", "latitude"], "dtype": "float32", "dims": ["time", "latitude"],
 * "shape": [28, 32]}]}, where the first "dims" are those that windows move along. Sets `*size` to
 * the bytes of the text without the NUL behind it, and writes it, with the NUL, where it fits into
 * `capacity` bytes. */
BATCHFS_WRITER_API int batchfs_writer_describe(batchfs_writer* writer, char* text, size_t capacity,
                                               size_t* size, char* error);

/* How many samples of the epoch the output lacks, of all ranks; among them those that wait in
 * memory for the rest of their chunk, or to be encoded. */
BATCHFS_WRITER_API int batchfs_writer_missing(batchfs_writer* writer, uint64_t* samples,
                                              char* error);

/* 1: the output is complete, and opens as a Zarr store; else 0. */
BATCHFS_WRITER_API int batchfs_writer_finished(batchfs_writer* writer);

/* Ends this rank's share: nothing can be written then. The rank that ends last makes the output a
 * Zarr store. Fails with what a write has failed with; in the rank that ends last with EIO when
 * samples are missing: what was written stays, and the same program continues it. Does nothing the
 * second time. */
BATCHFS_WRITER_API int batchfs_writer_close(batchfs_writer* writer, char* error);

/* Ends this rank's share without finishing the output, as after a failure: what was written is kept
 * for the next run, which the same program may begin at once. Fails with what a write has failed
 * with. Does nothing after batchfs_writer_close, which does nothing after it. */
BATCHFS_WRITER_API int batchfs_writer_suspend(batchfs_writer* writer, char* error);

/* Frees the writer. Without batchfs_writer_close before, what was written is kept for the next
 * run. NULL is allowed. */
BATCHFS_WRITER_API void batchfs_writer_free(batchfs_writer* writer);

#ifdef __cplusplus
}
#endif
