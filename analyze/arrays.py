"""Types of numpy arrays by what they hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]
Int8 = npt.NDArray[np.int8]
UInt8 = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.integer[Any]]
Float64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]
