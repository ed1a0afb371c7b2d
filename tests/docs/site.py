"""Builds the site."""

import os
import subprocess
import sys
from pathlib import Path

from .pages import ROOT


def built_into(folder: Path) -> Path:
    """What `make docs` builds."""
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder
