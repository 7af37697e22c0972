# SPDX-License-Identifier: MIT
# Copyright the cumem authors
import weakref


class Device:
    def __init__(self, number):
        self.id = number


class Context:
    def __init__(self, number):
        self.device = Device(number)
        self.allocations = {}
        self.made = 0

    def memalloc(self, size):
        """As Numba's: the context keeps the memory, the array a proxy of it."""
        address = 0x7F0000000000 + (self.made << 32)
        self.made += 1

        def finalizer():
            del self.allocations[address]

        memory = AutoFreePointer(weakref.proxy(self), address, size, finalizer=finalizer)
        self.allocations[address] = memory
        return memory.own()


class MemoryPointer:
    def __init__(self, context, pointer, size, owner=None, finalizer=None):
        self.context = context
        self.device_pointer = pointer
        self.size = size
        self.is_managed = finalizer is not None
        self.refct = 1
        self._owner = owner
        if finalizer is not None:
            self._finalizer = weakref.finalize(self, finalizer)

    def own(self):
        return OwnedPointer(weakref.proxy(self))

    def free(self):
        self._finalizer()


class AutoFreePointer(MemoryPointer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.refct -= 1


class MappedMemory(AutoFreePointer):
    pass


class OwnedPointer:
    def __init__(self, memptr, view=None):
        self._mem = memptr
        self._view = memptr if view is None else view
        memptr.refct += 1

        def deref():
            try:
                memptr.refct -= 1
                if memptr.refct == 0:
                    memptr.free()
            except ReferenceError:
                pass

        weakref.finalize(self, deref)

    def __getattr__(self, name):
        return getattr(self._view, name)
