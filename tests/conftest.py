"""What every test shares."""

import os

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is no failure. What is found is printed so that it can be played again; CI always plays the same.
settings.register_profile(
    "default", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=2000)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.fixture
def anyio_backend():
    """Pagefile runs on asyncio."""
    return "asyncio"


def pytest_terminal_summary(terminalreporter):
    """How long it took to recover from each fault, in every run that had faults."""
    reports = [report for found in terminalreporter.stats.values() for report in found]
    lines = [
        line
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, line in report.user_properties
        if name == "recovered"
    ]
    if lines:
        terminalreporter.section("recovered")
        terminalreporter.write_line("\n".join(lines))
