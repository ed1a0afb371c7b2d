"""Run in a fresh interpreter: imports every module of Pagefile, or of one package of it, and prints how it went.

With nothing hidden, each room is imported as if it were the first; what a missing module does, the order does not change.

Usage: python -I -B import_alone.py PACKAGE [MODULE TO HIDE]...
"""

import gc
import importlib
import json
import sys
from pathlib import Path

import pagefile
from pagefile.errors import MissingExtraError

#: The shipped contract suites are pytest suites: whoever imports them has pytest.
NEEDS_PYTEST = ("pagefile.testing",)

package, *hidden = sys.argv[1:]
# From the files: `pkgutil.walk_packages` would import every package to look into it.
home = Path(pagefile.__path__[0])
paths = sorted(path.relative_to(home.parent).with_suffix("") for path in home.rglob("*.py"))
found = [".".join(path.parts).removesuffix(".__init__") for path in paths]
names = [name for name in found if f"{name}.".startswith(f"{package}.")]
missing_extra = MissingExtraError.__name__
outcome: dict[str, list[str]] = {"imported": [], "missing": [], "failed": []}

# None in sys.modules makes an import fail as if the module were not installed.
for name in hidden:
    for loaded in [known for known in sys.modules if known == name or known.startswith(f"{name}.")]:
        del sys.modules[loaded]
    sys.modules[name] = None  # pyright: ignore[reportArgumentType]

# Everything is imported again and again, and what was is garbage only in the end.
gc.disable()
room = ""
for name in names:
    if name.rpartition(".")[2] == "__main__":
        continue
    before, room = room, ".".join(name.split(".")[:2])
    if room != before and not (hidden and before):
        for loaded in [known for known in sys.modules if known.partition(".")[0] == "pagefile"]:
            del sys.modules[loaded]
    try:
        importlib.import_module(name)
    except Exception as error:
        # Each room imports its own copy of the class, so it is known by name.
        says_how = type(error).__name__ == missing_extra and "pip install 'pagefile[" in str(error)
        lacks_pytest = (
            name.startswith(NEEDS_PYTEST) and isinstance(error, ImportError) and error.name in hidden
        )
        if says_how or lacks_pytest:
            outcome["missing"].append(name)
        else:
            outcome["failed"].append(f"{name}: {type(error).__name__}: {error}")
    else:
        outcome["imported"].append(name)

print(json.dumps(outcome))
