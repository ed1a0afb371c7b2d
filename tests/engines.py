"""An engine over a store that a test brings."""

from pagefile.engine.engine import Engine
from pagefile.engine.metrics import NoMeter
from pagefile.engine.standard_tiers import Kit


def engine_over(store, settings, clock, counter, *, meter=None):
    """The engine of a memory that has no models, with the tiers that every memory has."""
    return Engine(Kit(store, settings, clock, counter, meter or NoMeter()))
