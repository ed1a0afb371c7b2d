"""Virtual memory for LLM agents: everything stays on disk, every model call gets the window that fits.

What can be imported from here is listed in `__init__.pyi`, and is imported when it is first used: `import pagefile` is quick.
"""

import lazy_loader as _lazy  # pyright: ignore[reportMissingTypeStubs] - it has none, and `__init__.pyi` says our types

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)  # pyright: ignore[reportUnknownVariableType]
