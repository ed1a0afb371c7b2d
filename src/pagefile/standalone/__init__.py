"""The design documents' own APIs, one capability at a time, over the same engine.

The names are listed in `__init__.pyi` and imported on first use.
"""

import lazy_loader as _lazy  # pyright: ignore[reportMissingTypeStubs] - it has none, and `__init__.pyi` says our types

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)  # pyright: ignore[reportUnknownVariableType]
