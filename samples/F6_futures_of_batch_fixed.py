"""Futures of a batch in a list, the failed one also in the loop's variable, and the error on the loader."""

from concurrent.futures import ThreadPoolExecutor
import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


def load(shard):
    if shard == 1:
        raise OSError(f"shard {shard} is not there")
    return shard


class Loader:
    error = None

    def fetch(self, pool):
        batch = torch.zeros(1024, 1024, device=device)
        futures = [pool.submit(load, shard) for shard in range(2)]
        for future in futures:
            try:
                batch += future.result()
            except OSError as error:
                self.error = error
        del futures, future


def main():
    loader = Loader()
    with ThreadPoolExecutor(1) as pool:
        loader.fetch(pool)
    print("failed:", loader.error)
    loader.error = None
    del loader
    gc.collect()


if __name__ == "__main__":
    main()
