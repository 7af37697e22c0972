# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""A stand-in for Numba-CUDA: the same classes, attributes and ends of life."""
