/* Writes values of a file as predictions: write_predictions STORE VIEW OUTPUT KEY=VALUE...
 *
 * Keys are those of batchfs_writer_options, and
 *   values=FILE    the values of all samples, in the order of their numbers, C order
 *   samples=N      how many the file has
 *   from=DTYPE     their type (float32)
 *   tensor=NAME    whose predictions they are
 *   kill=N         ends the process with SIGKILL before batch number N of those that remain
 *
 * Prints how many batches were to do, and how many samples are missing at the end. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batchfs_writer.h"

static char error[BATCHFS_WRITER_ERROR_SIZE];

static void check(const char *what, int failed) {
  if (!failed) return;
  fprintf(stderr, "%s failed with %d: %s\n", what, failed, error);
  exit(1);
}

static char *contents(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  char *bytes;
  if (file == NULL || fseek(file, 0, SEEK_END) != 0) exit(2);
  *size = (size_t)ftell(file);
  rewind(file);
  bytes = malloc(*size + 1);
  if (bytes == NULL || fread(bytes, 1, *size, file) != *size) exit(2);
  fclose(file);
  return bytes;
}

int main(int argc, char **argv) {
  batchfs_writer_options options;
  const char *from = "float32", *tensor = NULL, *names[17] = {NULL}, *tensors[2] = {NULL, NULL};
  const char *store_options[2] = {NULL, NULL};
  char *values = NULL;
  size_t bytes = 0, samples = 1, row, count, capacity, i, n, named = 0;
  long killed = -1;
  int64_t *batches, *numbers;
  uint64_t missing;
  batchfs_writer *writer;
  int a;
  if (argc < 4) return 2;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  for (a = 4; a < argc; ++a) {
    char *value = strchr(argv[a], '=');
    const char *key = argv[a];
    if (value == NULL) return 2;
    *value++ = '\0';
    if (strcmp(key, "values") == 0) values = contents(value, &bytes);
    else if (strcmp(key, "samples") == 0) samples = strtoul(value, NULL, 10);
    else if (strcmp(key, "from") == 0) from = value;
    else if (strcmp(key, "kill") == 0) killed = strtol(value, NULL, 10);
    else if (strcmp(key, "tensor") == 0) tensors[0] = tensor = value;
    else if (strcmp(key, "part") == 0) options.part = value;
    else if (strcmp(key, "name") == 0) options.name = value;
    else if (strcmp(key, "overlap") == 0) options.overlap = value;
    else if (strcmp(key, "time") == 0) options.time = value;
    else if (strcmp(key, "reduce") == 0) options.reduce = value;
    else if (strcmp(key, "dtype") == 0) options.dtype = value;
    else if (strcmp(key, "chunks") == 0) options.chunks = value;
    else if (strcmp(key, "shards") == 0) options.shards = value;
    else if (strcmp(key, "codec") == 0) options.codec = value;
    else if (strcmp(key, "denormalize") == 0) options.denormalize = atoi(value);
    else if (strcmp(key, "threads") == 0) options.threads = atoi(value);
    else if (strcmp(key, "memory") == 0) options.memory = strtoul(value, NULL, 10);
    else if (strcmp(key, "rank") == 0) options.rank = atoi(value);
    else if (strcmp(key, "world") == 0) options.world = atoi(value);
    else if (strcmp(key, "epoch") == 0) options.epoch = atoi(value);
    else if (strcmp(key, "store_option") == 0) store_options[0] = value;
    else if (named < 16) names[named] = key, names[named + 1] = value, named += 2;
  }
  if (tensor != NULL) options.tensors = tensors;
  if (named > 0) options.names = names;
  options.store_options = store_options;
  check("create", batchfs_writer_create(argv[1], argv[2], argv[3], &options, &writer, error));
  row = bytes / samples;
  check("remaining", batchfs_writer_remaining(writer, NULL, 0, &count, error));
  batches = malloc((count + 1) * sizeof *batches);
  check("remaining", batchfs_writer_remaining(writer, batches, count, &count, error));
  printf("%lu batches\n", (unsigned long)count);
  for (i = 0; i < count; ++i) {
    char *batch;
    if ((long)i == killed) raise(SIGKILL);
    check("samples", batchfs_writer_batch_samples(writer, batches[i], NULL, 0, &capacity, error));
    numbers = malloc(capacity * sizeof *numbers);
    check("samples",
          batchfs_writer_batch_samples(writer, batches[i], numbers, capacity, &capacity, error));
    batch = malloc(capacity * row);
    for (n = 0; n < capacity; ++n)
      memcpy(batch + n * row, values + (size_t)numbers[n] * row, row);
    check("write", batchfs_writer_write(writer, tensor, numbers, capacity, batch, from, NULL, error));
    memset(batch, 0x55, capacity * row); /* the library has copied it */
    free(batch);
    free(numbers);
  }
  free(batches);
  free(values);
  check("close", batchfs_writer_close(writer, error));
  check("missing", batchfs_writer_missing(writer, &missing, error));
  printf("%lu missing, finished %d\n", (unsigned long)missing, batchfs_writer_finished(writer));
  batchfs_writer_free(writer);
  return 0;
}
