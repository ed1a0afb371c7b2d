"""Virtual memory for LLM agents: everything stays on disk, every model call gets the window that fits.

What can be imported from here is listed in `__init__.pyi`, and is imported when it is first used: `import pagefile` is quick.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
