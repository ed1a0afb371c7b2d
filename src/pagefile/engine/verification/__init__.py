"""Proves that every recorded byte is still reachable, and rebuilds derived data that is wrong."""

from pagefile.engine.verification.findings import Finding, Level, Report
from pagefile.engine.verification.verifier import verify

__all__ = ["Finding", "Level", "Report", "verify"]
