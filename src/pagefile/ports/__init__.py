"""What Pagefile requires of a backend: small abstract classes to implement.

Each verb is coarse (one round trip to the database) and takes one request object, so that a port can gain a
field without breaking third-party backends. The docstrings are the contract; each rule has a contract test of
the same name in `pagefile.testing`.
"""

# ruff: noqa: F403 - each module says what it exports

from pagefile.ports import audit, derived, items, leases, log, pages, store, stored, world
from pagefile.ports.audit import *
from pagefile.ports.derived import *
from pagefile.ports.items import *
from pagefile.ports.leases import *
from pagefile.ports.log import *
from pagefile.ports.pages import *
from pagefile.ports.store import *
from pagefile.ports.stored import *
from pagefile.ports.world import *

__all__: list[str] = []
__all__ += derived.__all__
__all__ += items.__all__
__all__ += leases.__all__
__all__ += log.__all__
__all__ += pages.__all__
__all__ += stored.__all__
__all__ += store.__all__
__all__ += audit.__all__
__all__ += world.__all__
