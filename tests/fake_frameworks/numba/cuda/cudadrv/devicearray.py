# SPDX-License-Identifier: MIT
# Copyright the cumem authors


class DeviceNDArrayBase:
    def __init__(self, shape, dtype, itemsize, gpu_data):
        self.shape = shape
        self.dtype = dtype
        self.alloc_size = itemsize
        for size in shape:
            self.alloc_size *= size
        self.gpu_data = gpu_data

    @property
    def __cuda_array_interface__(self):
        raise RuntimeError("asked inside a collection")


class DeviceRecord(DeviceNDArrayBase):
    pass


class DeviceNDArray(DeviceNDArrayBase):
    pass


class ManagedNDArray(DeviceNDArrayBase):
    pass
