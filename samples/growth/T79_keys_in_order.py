"""Memos and caches under keys that come in order: lengths that grow with the epochs, and the paths of a data set."""

import functools

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
LONGEST = 40


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.out, self.masks, self.places = nn.Linear(512, 512, device=device), {}, {}

    def mask(self, size):
        if size not in self.masks:
            self.masks[size] = torch.ones(256, 512, device=device).tril(size)
        return self.masks[size]

    def forward(self, x):
        x = x.to(device)
        rows, columns = x.shape
        if len(x) not in self.places:
            self.places[len(x)] = torch.ones(256, 512, device=device) / rows
        return self.out(self.mask(columns) + self.places[len(x)])


class Images(torch.utils.data.Dataset):
    def __init__(self):
        self.paths = [f"images/{number:04d}.png" for number in range(LONGEST)]
        self.memo = {}

    def __len__(self):
        return len(self.paths)

    def load(self, path):
        if path not in self.memo:
            self.memo[path] = torch.full((256, 512), float(path[7:11]))
        return self.memo[path]

    def __getitem__(self, index):
        path = self.paths[index]
        return self.load(path)


@functools.cache
def decay(size):
    return torch.linspace(1, 0, 512, device=device).repeat(256, 1) / size


@functools.lru_cache(maxsize=None)
def embed(word):
    torch.manual_seed(len(word))
    return torch.randn(256, 512, device=device)


def step(optimizer, loss):
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def by_lengths():
    model = Attention()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for length in range(1, LONGEST):
        for x in torch.ones(1, length, 8 * length):
            step(optimizer, (model(x) * decay(x.size(1))).square().mean())
    print("masks:", len(model.masks), len(model.places), decay.cache_info().currsize)


def by_paths():
    model, images = nn.Linear(512, 512, device=device), Images()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x in torch.utils.data.DataLoader(images, batch_size=None):
        step(optimizer, model(x.to(device)).square().mean())
    print("images:", len(images.memo))


def by_words():
    model = nn.Linear(512, 512, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    words = [f"word {number}" for number in range(LONGEST)]
    for epoch in range(2):
        for word in words:
            step(optimizer, model(embed(word)).square().mean())
    print("words:", embed.cache_info().currsize)


def main():
    by_lengths()
    by_paths()
    by_words()


if __name__ == "__main__":
    main()
