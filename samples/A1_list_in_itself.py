"""A history that was appended to itself by mistake."""

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    history = [torch.zeros(1024, 1024, device=device)]
    history.append(history)
    print("entries:", len(history))


if __name__ == "__main__":
    main()
