"""The training loop itself lets go of what is old: by a loop of its own, or by a name that is made of the step."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
KEPT = 20


class Checkpoints:
    def __init__(self, kept):
        self.kept = kept
        self.of_step = {}

    def save(self, step, weight):
        self.of_step[f"step_{step}"] = weight
        old = f"step_{step - self.kept}"
        if old in self.of_step:
            del self.of_step[old]


def main():
    torch.manual_seed(0)
    model = nn.Linear(256, 256, device=device)
    optimizer = torch.optim.Adam(model.parameters())
    grids, outputs, weights, rounds, requests, epochs = {}, {}, {}, {}, [], {}
    checkpoints = Checkpoints(KEPT)
    for step in range(120):
        optimizer.zero_grad(set_to_none=True)
        output = model(torch.randn(256, 256, device=device))
        output.pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        output = output.detach()

        grids[step] = output.clone()
        for old in [each for each in grids if each <= step - KEPT]:
            del grids[old]
        outputs[step] = output.clone()
        for each in list(outputs):
            if each < step - KEPT:
                del outputs[each]
        weights[step] = model.weight.detach().clone()
        for each in sorted(weights)[:-KEPT]:
            del weights[each]
        rounds[step] = output.clone()
        late = [each for each in rounds if each < step - KEPT]
        for each in late:
            rounds.pop(each)
        requests.append((step + KEPT, output.clone()))
        for request in list(requests):
            if request[0] <= step:
                requests.remove(request)
        epochs[f"epoch_{step}"] = output.clone()
        epochs.pop(f"epoch_{step - KEPT}", None)
        checkpoints.save(step, model.weight.detach().clone())
    print("kept:", len(grids), len(requests), len(epochs))


if __name__ == "__main__":
    main()
