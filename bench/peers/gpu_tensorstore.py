"""TensorStore beside bench/gpu_batches: the same batches, read into pinned memory and copied to the
GPU.

    python3 bench/peers/gpu_tensorstore.py FOLDER [CODING]...

FOLDER is gpu_batches' own, with its stores in it. Each step is read once for x and y, which are
made of it on the GPU.
"""

import sys
import time

import tensorstore as ts
import torch

VARIABLES = ["t", "u", "v", "q", "z", "w"]
PAIRS, ROWS, COLUMNS, SECONDS, AHEAD = 16, 640, 1280, 2.0, 3


def measure(root):
    context = ts.Context({"cache_pool": {"total_bytes_limit": 0}})
    arrays = [ts.open({"driver": "zarr", "kvstore": {"driver": "file", "path": f"{root}/{name}/"}},
                      context=context).result() for name in VARIABLES]
    batches = (arrays[0].shape[0] - 1) // PAIRS
    pinned = [torch.empty((PAIRS + 1, len(VARIABLES), ROWS, COLUMNS), pin_memory=True)
              for _ in range(AHEAD)]
    x, y = (torch.empty((PAIRS, len(VARIABLES), ROWS, COLUMNS), device="cuda") for _ in range(2))
    copied = [torch.cuda.Event() for _ in range(AHEAD)]

    def start(i):
        begin = i % batches * PAIRS
        copied[i % AHEAD].synchronize()
        memory = pinned[i % AHEAD].numpy()
        return [ts.array(memory[:, v]).write(array[begin:begin + PAIRS + 1].translate_to[0])
                for v, array in enumerate(arrays)]

    reads = [start(i) for i in range(AHEAD - 1)]
    done = 0
    begin = None
    for i in range(1_000_000):
        if i == 3:
            begin = time.perf_counter()
        if i > 3 and time.perf_counter() - begin > SECONDS:
            break
        for read in reads[i]:
            read.result()
        steps = pinned[i % AHEAD].to("cuda", non_blocking=True)
        copied[i % AHEAD].record()
        x.copy_(steps[:-1])
        y.copy_(steps[1:])
        reads.append(start(i + AHEAD - 1))
        done += i >= 3
    torch.cuda.synchronize()
    passed = time.perf_counter() - begin
    chunk = ROWS * COLUMNS * 4 * len(VARIABLES)
    return done * 2 * PAIRS * chunk / passed / 1e9, done * (PAIRS + 1) * chunk / passed / 1e9


def main():
    print(f"TensorStore {getattr(ts, '__version__', '')}: coding, GB/s delivered, GB/s of chunks")
    for coding in sys.argv[2:] or ["raw", "blosc-lz4", "blosc-zstd", "zstd-3"]:
        delivered, chunks = measure(f"{sys.argv[1]}/{coding}")
        print(f"{coding:10} {delivered:9.1f} {chunks:7.1f}", flush=True)


if __name__ == "__main__":
    main()
