"""A tree of dictionaries with links to the parent."""

import gc

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    root = {"x": torch.zeros(1024, 1024, device=device), "kids": []}
    for name in ("left", "right"):
        kid = {"name": name}
        kid["up"] = root
        root["kids"].append(kid)
    print("kids:", len(root["kids"]))
    for kid in root["kids"]:
        kid["up"] = None
    del root, kid
    gc.collect()


if __name__ == "__main__":
    main()
