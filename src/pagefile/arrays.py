"""numpy, imported with the first array: a program that only imports Pagefile, and a command that ranks nothing, do not wait for it.

`lazy_loader.load` would leave an unfinished `numpy` in `sys.modules` for every other library to find.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Bools: TypeAlias = npt.NDArray[np.bool_]
    Int32s: TypeAlias = npt.NDArray[np.int32]
    Int64s: TypeAlias = npt.NDArray[np.int64]
    Float32s: TypeAlias = npt.NDArray[np.float32]
    Float64s: TypeAlias = npt.NDArray[np.float64]
    Numbers: TypeAlias = npt.NDArray[Any]
else:
    # Names of types only: to evaluate them would import numpy.
    Bools = Int32s = Int64s = Float32s = Float64s = Numbers = Any

    class _Numpy:
        def __getattr__(self, name: str) -> Any:
            value = getattr(import_module("numpy"), name)
            # Looked up once: ranking asks for the same few names over and over.
            setattr(self, name, value)
            return value

    np = _Numpy()
