#pragma once
/* batchfs_reader.h: training batches that batchfs makes of Zarr stores, for C and whatever calls C.
 *
 *   batchfs_reader* reader;
 *   if (batchfs_open("/mnt/era5/views/train", NULL, &reader) != 0) fail(batchfs_error());
 *   batchfs_start(reader, 0, 0);
 *   batchfs_batch* batch;
 *   while (batchfs_next(reader, &batch) == 0 && batch != NULL) {
 *     batchfs_tensor x = {sizeof x};
 *     if (batchfs_get_tensor(batch, "x", &x) == 0) use(x.data, x.shape, x.ndim);
 *     batchfs_release(batch);
 *   }
 *   batchfs_close(reader);
 *
 * Batches come as shared memory from the process that makes them (`batchfs mount`, `batchfs
 * serve`), or, where its socket cannot be reached, from the files of the mount. Nothing is copied
 * where the system allows it.
 *
 * The structs may grow at their end. Each begins with its size as the caller knows it, which the
 * caller sets: the library reads and writes no more than that, and what it does not know itself it
 * leaves zero.
 *
 * Functions that can fail return 0, or an errno value; batchfs_error() then says why, for the
 * calling thread. Calls on one reader may come from several threads and wait for each other;
 * batchfs_release and reading a batch never wait. A batch, and what batchfs_get_tensor gave of it,
 * is valid until it is released, also after batchfs_close and when the process that made it is
 * gone. After fork(), the child may go on to use the reader: it gets a connection of its own;
 * batches it inherited stay valid. Link with -lbatchfs_reader.
 */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define BATCHFS_API __attribute__((visibility("default")))
#else
#define BATCHFS_API
#endif

typedef struct batchfs_reader batchfs_reader;
typedef struct batchfs_batch batchfs_batch;

/* All zero is the default of everything but size and world. */
typedef struct batchfs_options {
  size_t size;       /* sizeof(batchfs_options) */
  const char* view;  /* needed where the place has several; NULL otherwise */
  int64_t rank;      /* rank R of W reads the batches R, R + W, ... */
  int64_t world;     /* 0 or 1: all */
  uint32_t prefetch; /* batches made ready beyond those that are held; 0: two */
  const char* mode; /* "auto" (NULL), "shm": only shared memory, "server": only device memory of the
                       server, "client": only decoded here, on the device, "files": only files */
  const char* device;     /* "cuda:0": batches come in this GPU's memory; "cpu" (NULL) */
  uint64_t device_memory; /* bytes of it that decoding here may take; 0: a quarter of what is free,
                             at most 24 GiB */
} batchfs_options;

/* A tensor of a batch, on the reader's device. Strides are in bytes; the elements lie in C order.
 */
typedef struct batchfs_tensor {
  size_t size; /* sizeof(batchfs_tensor), set before it is given to a function */
  const char* name;
  const char* dtype;   /* numpy's name: "float32"; "bfloat16" */
  uint32_t itemsize;   /* bytes of an element */
  int32_t dlpack_code; /* DLDataTypeCode, -1 for times, strings and structures */
  int32_t ndim;
  const int64_t* shape;
  const int64_t* strides;
  const void* data; /* of the host, or an address of the GPU; not to be written to */
  uint64_t nbytes;
  int32_t dlpack_device; /* DLDeviceType: 1 the host, 2 CUDA */
  int32_t device_number;
} batchfs_tensor;

typedef struct batchfs_batch_info {
  size_t size; /* sizeof(batchfs_batch_info), set before it is given to a function */
  int64_t epoch;
  int64_t number;  /* in the epoch, over all ranks */
  int64_t samples; /* the last batch of an epoch may hold fewer */
  int64_t tensors;
} batchfs_batch_info;

/* Type of a label. */
typedef enum batchfs_label_type {
  BATCHFS_LABEL_POSITION =
      1,                     /* integer: the dimension has no coordinate; a position in the store */
  BATCHFS_LABEL_INTEGER = 2, /* integer */
  BATCHFS_LABEL_NUMBER = 3,  /* number */
  BATCHFS_LABEL_TIME = 4,    /* integer: nanoseconds since 1970-01-01; INT64_MIN: not a time */
  BATCHFS_LABEL_DURATION = 5 /* integer: nanoseconds; INT64_MIN: none */
} batchfs_label_type;

typedef struct batchfs_label {
  size_t size;  /* sizeof(batchfs_label), set before it is given to a function */
  int32_t type; /* batchfs_label_type: whether `integer` or `number` holds it */
  int64_t integer;
  double number; /* the same value of every type, rounded where it is an integer */
} batchfs_label;

/* Why the last call of this thread failed: "WHY (WHERE)". Valid until its next call. */
BATCHFS_API const char* batchfs_error(void);

/* `place`: a mount, a view's directory in it, or a socket of `batchfs serve`. `options` may be
 * NULL. */
BATCHFS_API int batchfs_open(const char* place, const batchfs_options* options,
                             batchfs_reader** reader);
BATCHFS_API void batchfs_close(batchfs_reader* reader);

/* schema.json: tensors, samples, batches, epochs. Valid until the reader is closed. */
BATCHFS_API const char* batchfs_schema(const batchfs_reader* reader);
/* Global batches in an epoch. */
BATCHFS_API int64_t batchfs_batches(const batchfs_reader* reader);
/* This rank's batches of an epoch of which `done` global batches have been read by all ranks
 * together. */
BATCHFS_API int64_t batchfs_rank_batches(const batchfs_reader* reader, int64_t done);
/* "client" (decoded here, on the device), "server" (device memory of the server), "shm" (shared
 * memory) or "files"; "none" when the server is gone. */
BATCHFS_API const char* batchfs_mode(batchfs_reader* reader);
/* Why batches for a device were made on the host and copied, with how many for each reason; empty
 * when none was. Valid until the calling thread's next call of this function. */
BATCHFS_API const char* batchfs_why_copied(batchfs_reader* reader);

/* From now on batchfs_next returns this rank's batches of `epoch`, of which `done` global batches
 * have been read: rank R of W gets the batches done + R, done + R + W, ... */
BATCHFS_API int batchfs_start(batchfs_reader* reader, int64_t epoch, int64_t done);
/* The next batch; NULL after the last. A batch that cannot be made is an error; the next call returns
 * the batch after it. */
BATCHFS_API int batchfs_next(batchfs_reader* reader, batchfs_batch** batch);
/* One batch by its global number. */
BATCHFS_API int batchfs_get(batchfs_reader* reader, int64_t epoch, int64_t number,
                            batchfs_batch** batch);

BATCHFS_API int batchfs_info(const batchfs_batch* batch, batchfs_batch_info* info);
/* By name, or by position in the schema. */
BATCHFS_API int batchfs_get_tensor(const batchfs_batch* batch, const char* name,
                                   batchfs_tensor* tensor);
BATCHFS_API int batchfs_tensor_at(const batchfs_batch* batch, int32_t position,
                                  batchfs_tensor* tensor);
/* The numbers of the batch's samples, in the order of its rows; as many as batchfs_batch_info has
 * samples. Valid until the batch is released. */
BATCHFS_API int batchfs_batch_samples(const batchfs_batch* batch, const int64_t** numbers);
/* The label of the window's dimension `dim` at the start of sample `sample` (of the batch, from 0).
 * ENOTSUP for strings. */
BATCHFS_API int batchfs_batch_label(const batchfs_batch* batch, int64_t sample, const char* dim,
                                    batchfs_label* label);
/* Releases the batch. Call once, from any thread. Precondition: GPU work that reads it has
 * completed. */
BATCHFS_API void batchfs_release(batchfs_batch* batch);
/* Releases the batch after the work now queued on `stream` (a cudaStream_t; NULL: the default one).
 * Does not block. */
BATCHFS_API void batchfs_release_after(batchfs_batch* batch, void* stream);

#ifdef __cplusplus
}
#endif
