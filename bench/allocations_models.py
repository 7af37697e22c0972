# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""The program that case c of allocations.py trains: what a user would have written.

The loop around it is the bench's, and no line of it is the user's: a stack that has lost
its inner frames has none of this file.
"""

DEVICE = "cuda"


def _resnet50(torch):
    import torchvision

    model = torchvision.models.resnet50()
    batch = torch.randn(32, 3, 224, 224, device=DEVICE)
    goal = torch.randint(0, 1000, (32,), device=DEVICE)

    def loss(model):
        return torch.nn.functional.cross_entropy(model(batch), goal)

    return model, loss


def _transformer(torch):
    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
    batch = torch.randn(16, 128, 512, device=DEVICE)
    return model, lambda model: model(batch).square().mean()


def _compiled(torch):
    model = torch.nn.Sequential(*[layer for _ in range(6) for layer in
                                  (torch.nn.Linear(1024, 1024), torch.nn.GELU())])
    batch = torch.randn(256, 1024, device=DEVICE)
    compiled = torch.compile(model)
    return model, lambda _: compiled(batch).square().mean()


MODELS = {"resnet50": _resnet50, "transformer": _transformer, "compiled": _compiled}


class Program:
    """A model and its optimizer, an iteration in three steps."""

    def __init__(self, torch, name):
        torch.manual_seed(0)
        self._model, self._loss_of = MODELS[name](torch)
        self._model.to(DEVICE)
        self._optimizer = torch.optim.AdamW(self._model.parameters())

    def forward(self):
        self._optimizer.zero_grad(set_to_none=True)
        return self._loss_of(self._model)

    def backward(self, loss):
        loss.backward()

    def step(self):
        self._optimizer.step()
