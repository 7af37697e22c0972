"""A list that holds an iterator over itself: no rule knows it."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    queue = [torch.zeros(1024, 1024, device=device)]
    cursor = iter(queue)
    queue.append(cursor)
    print("items:", len(queue))
    queue.clear()
    del queue, cursor
    gc.collect()


if __name__ == "__main__":
    main()
