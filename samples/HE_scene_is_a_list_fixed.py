"""A scene that is a list itself; its actors are told what scene they are in."""

import gc
import weakref

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Scene(list):
    def place(self, actor):
        actor.scene = weakref.ref(self)
        self.append(actor)


class Actor:
    def __init__(self):
        self.texture = torch.zeros(1024, 1024, device=device)


def main():
    scene = Scene()
    for _ in range(3):
        scene.place(Actor())
    print("actors:", len(scene))
    del scene
    gc.collect()


if __name__ == "__main__":
    main()
