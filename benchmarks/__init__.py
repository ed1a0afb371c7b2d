"""The benchmarks users can run themselves: every speed is a ratio to something measured in the same run."""

from pathlib import Path

#: The checkout: processes that a benchmark starts find this package there.
ROOT = Path(__file__).parents[1]
