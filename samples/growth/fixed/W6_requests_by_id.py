"""A request that is done leaves the list of those that run, but not the table by id, with its keys and values."""

import dataclasses

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


@dataclasses.dataclass
class Request:
    id: str
    tokens: int
    kv: list = dataclasses.field(default_factory=list)


class Engine:
    def __init__(self):
        self.attention = nn.Linear(64, 64, device=device)
        self.optimizer = torch.optim.SGD(self.attention.parameters(), lr=0.1)
        self.requests = {}
        self.running = []

    def add(self, id, tokens):
        request = Request(id, tokens)
        self.requests[id] = request
        self.running.append(request)

    def step(self):
        for request in self.running:
            x = torch.randn(request.tokens, 64, device=device)
            with torch.no_grad():
                request.kv.append((self.attention(x), self.attention(x)))
        for request in self.running:
            if len(request.kv) == 4:
                del self.requests[request.id]
        self.running = [one for one in self.running if len(one.kv) < 4]
        self.optimizer.zero_grad()
        self.attention(torch.randn(8, 64, device=device)).mean().backward()
        self.optimizer.step()


def main():
    engine = Engine()
    for number in range(60):
        torch.manual_seed(number)
        engine.add(f"request {number}", 512)
        engine.step()
    print("running:", len(engine.running))


if __name__ == "__main__":
    main()
