"""Measurements for nobody: the default when no meter is given."""

from pagefile.ports import Meter


class NoMeter(Meter):
    """Takes measurements and forgets them."""

    def count(self, name: str, amount: float = 1.0, **labels: str) -> None:
        pass

    def observe(self, name: str, value: float, **labels: str) -> None:
        pass
