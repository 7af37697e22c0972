"""A process group is made for every step: NCCL keeps the buffers of each. Needs a GPU."""

import torch
import torch.distributed as dist
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    store = dist.TCPStore("127.0.0.1", 0, 1, True)
    dist.init_process_group("nccl", store=store, rank=0, world_size=1)
    model = nn.Linear(1024, 10, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    group = dist.new_group([0])
    for step in range(30):
        loss = model(torch.ones(8, 1024, device=device)).square().mean()
        loss.backward()
        dist.all_reduce(model.weight.grad, group=group)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    dist.destroy_process_group()
    print("steps: 30")


if __name__ == "__main__":
    main()
