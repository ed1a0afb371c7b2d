"""Proves that every recorded byte can still be reached, and makes again what is derived and wrong."""

from pagefile.engine.verifying.findings import Finding, Level, Report
from pagefile.engine.verifying.verifier import verify

__all__ = ["Finding", "Level", "Report", "verify"]
