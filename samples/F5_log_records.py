"""A handler keeps the records of the log, with the errors in them."""

import logging
import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Recent(logging.Handler):
    def __init__(self):
        super().__init__()
        self.records = []

    def emit(self, record):
        self.records.append(record)


def step(log, recent):
    x = torch.zeros(1024, 1024, device=device)
    try:
        x[0] = int("one")
    except ValueError:
        log.exception("bad field")
    return len(recent.records)


def main():
    log = logging.Logger("train")
    recent = Recent()
    log.addHandler(recent)
    print("records:", step(log, recent))
    del log, recent
    gc.collect()


if __name__ == "__main__":
    main()
