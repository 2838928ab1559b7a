"""What the planner takes as numbers: lists, numpy arrays and 1-D tensors of any library.

64-bit integers that lie one behind the other in host memory are looked at where they are; other
integers are copied. A tensor needs nothing but `__dlpack__`: no library is imported for it.
"""

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray


class Tensor(Protocol):
    """What DLPack exports: tensors of torch, jax, cupy and others, on the CPU."""

    def __dlpack__(self) -> Any:
        """The memory as a capsule."""

    def __dlpack_device__(self) -> tuple[Any, Any]:
        """Where the memory is."""


IntegerArray: TypeAlias = Sequence[int] | NDArray[np.integer[Any]] | Tensor
"""Whole numbers; a bool is none, and neither is a float."""

NumberArray: TypeAlias = (
    Sequence[int] | Sequence[float] | NDArray[np.integer[Any] | np.floating[Any]] | Tensor
)
"""Whole numbers, float32 or float64, used in the type in which they come."""
