"""Odd tensors and weak proxies in the same garbage."""

import gc
import weakref

import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor
from torch.testing._internal.distributed.fake_pg import FakeStore

device = "cuda" if torch.cuda.is_available() else "cpu"


class Scaled(torch.Tensor):
    """A subclass that refuses to be asked anything."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise TypeError("asked for " + func.__name__)


class Bag:
    pass


def main():
    bag = Bag()
    bag.whole = weakref.ref(bag)
    bag.proxy = weakref.proxy(bag)
    dead = Bag()
    bag.dead_proxy = weakref.proxy(dead)
    del dead
    bag.dense = torch.zeros(1024, 1024, device=device)
    bag.scaled = torch.zeros(512, 1024, device=device).as_subclass(Scaled)
    bag.sharded = distribute_tensor(
        torch.zeros(256, 1024, device=device), mesh, [Shard(0)])
    bag.meta = torch.zeros(4096, 4096, device="meta")
    bag.sparse = torch.eye(8, device=device).to_sparse()
    with FakeTensorMode():
        bag.fake = torch.zeros(4096, 4096, device=device)
    del bag
    gc.collect()
    print("still here")


if __name__ == "__main__":
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=1)
    mesh = init_device_mesh(device, (1,))
    main()
    dist.destroy_process_group()
