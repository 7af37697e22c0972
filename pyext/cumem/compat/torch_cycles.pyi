# SPDX-License-Identifier: MIT
# Copyright the cumem authors
from collections.abc import Callable
from typing import Any

from .. import observe_tensor_cycles, warn_tensor_cycles

__all__ = ["observe_garbage", "observe_tensor_cycles", "warn_tensor_cycles"]

def observe_garbage(observer: Callable[[list[Any]], object]) -> Callable[[], None]: ...
