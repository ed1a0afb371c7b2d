"""Proves that every recorded byte is still reachable, and rebuilds derived data that is wrong."""

from pagefile.engine.verifying.findings import Finding, Level, Report
from pagefile.engine.verifying.verifier import verify

__all__ = ["Finding", "Level", "Report", "verify"]
