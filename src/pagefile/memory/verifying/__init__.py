"""Proves that every recorded byte can still be reached, and makes again what is derived and wrong."""

from pagefile.memory.verifying.findings import Finding, Level, Report
from pagefile.memory.verifying.verifier import verify

__all__ = ["Finding", "Level", "Report", "verify"]
