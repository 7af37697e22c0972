# SPDX-License-Identifier: MIT
# Copyright the cumem authors
import os
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Literal, TypeAlias

_Device: TypeAlias = str | int | object  # a name, a CUDA index, a torch.device
_Devices: TypeAlias = Literal["auto"] | _Device | Sequence[_Device]
_Size: TypeAlias = int | str

__version__: str

class CycleReport(str):
    def __new__(cls, event: object) -> CycleReport: ...
    @property
    def report(self) -> dict[str, Any]: ...
    @property
    def text(self) -> str: ...
    def save(self, path: str | os.PathLike[str]) -> None: ...

class Handle:
    def remove(self) -> None: ...
    def __call__(self) -> None: ...
    def __enter__(self) -> Handle: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

def observe_tensor_cycles(
    callback: Callable[[CycleReport], object],
    *,
    devices: _Devices = "auto",
    min_bytes: _Size = 0,
) -> Handle: ...
def warn_tensor_cycles(
    *,
    directory: str | os.PathLike[str] | None = None,
    devices: _Devices = "auto",
    min_bytes: _Size = "1MiB",
) -> Handle: ...
def find_cycles(*, devices: _Devices = "auto") -> CycleReport: ...
def memory(device: _Device | None = None) -> dict[str, Any]: ...
def step(name: str | None = None) -> None: ...
def flush(timeout: float | None = None) -> bool: ...
def status() -> dict[str, Any]: ...
