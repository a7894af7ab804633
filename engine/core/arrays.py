"""Names for the numpy column types that cross module borders."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Int64Array: TypeAlias = NDArray[np.int64]
Int32Array: TypeAlias = NDArray[np.int32]
UInt8Array: TypeAlias = NDArray[np.uint8]
Float32Array: TypeAlias = NDArray[np.float32]
Float64Array: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]
AnyArray: TypeAlias = NDArray[Any]


def read_only(column: NDArray[Any]) -> NDArray[Any]:
    """Returns ``column`` with its write flag cleared (a view where the base stays writable)."""
    view = column.view()
    view.flags.writeable = False
    return view
