# SPDX-License-Identifier: MIT
# Copyright the cumem authors
from . import cudadrv
from .cudadrv import devicearray, driver
