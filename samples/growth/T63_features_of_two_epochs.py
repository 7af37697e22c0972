"""Features by sample in random order: those of this epoch beside the last one's, which the next ones take the place
of, and a mean over epochs; the same by variables and by a local that carries them over."""

import random

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Bank:
    def __init__(self):
        self.before, self.features, self.mean = {}, {}, {}

    def put(self, number, features):
        self.features[number] = features
        last = self.mean.get(number)
        self.mean[number] = features if last is None else 0.6 * last + 0.4 * features

    def drift(self, number):
        return float((self.features[number] - self.before[number]).norm()) if number in self.before else 0.0

    def turn(self):
        self.before, self.features = self.features, {}


class Scores:
    def __init__(self):
        self.old, self.new = {}, {}

    def turn(self):
        done = self.new
        self.new = {}
        self.old = done


def main():
    torch.manual_seed(0)
    random.seed(0)
    model = nn.Sequential(nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 256)).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    bank, scores = Bank(), Scores()
    first, second = {}, {}
    numbers = list(range(40))
    for epoch in range(3):
        random.shuffle(numbers)
        for number in numbers:
            x = torch.randn(512, 256, device=device)
            optimizer.zero_grad(set_to_none=True)
            output = model(x)
            F.mse_loss(output, x).backward()
            optimizer.step()
            bank.put(number, output.detach())
            bank.drift(number)
            scores.new[number] = output.detach().softmax(1)
            second[number] = output.detach().tanh()
        bank.turn()
        scores.turn()
        first, second = second, {}
    print("kept:", len(bank.before), len(bank.mean), len(scores.old), len(first))


if __name__ == "__main__":
    main()
