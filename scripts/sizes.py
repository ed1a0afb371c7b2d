"""Print what `make serve` and what `make test` install: both set up in a folder that is removed afterwards."""

import subprocess
import sys
import tempfile
from pathlib import Path

from wheel import taken

ROOT = Path(__file__).resolve().parents[1]
#: What each target installs, and the most it may take, in MB; the tests take what they need.
LOCKS = {"serve": ("requirements-serve.lock", 300), "test": ("requirements.lock", None)}


def installed(target: str, folder: Path) -> int:
    """Bytes of the environment of a target, set up as the Makefile does it, in a copy of it: other folders stay as they are."""
    command = ["make", "--silent", f"VENV={folder}", f"PYTHON={sys.executable}", _marker(target, folder)]
    subprocess.run(command, cwd=ROOT, check=True, stderr=subprocess.DEVNULL)  # noqa: S603 - our own Makefile
    return taken(folder)


def _marker(target: str, folder: Path) -> str:
    return str(folder / (".ready-to-serve" if target == "serve" else ".ready"))


def main() -> None:
    """Print a line for each, and fail where one takes too much."""
    too_large = False
    with tempfile.TemporaryDirectory(prefix="pagefile-sizes-") as made:
        for target, (lock, most) in LOCKS.items():
            size = installed(target, Path(made) / target) / 1e6
            bound = f", at most {most} MB" if most else ""
            print(f"make {target}: {size:.0f} MB ({lock}{bound})", flush=True)
            too_large |= most is not None and size > most
    sys.exit(too_large)


if __name__ == "__main__":
    main()
