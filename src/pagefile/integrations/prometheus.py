"""Pagefile's metrics for Prometheus."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector

from pagefile.engine.metrics import METRICS
from pagefile.ports import Meter

CONTENT_TYPE = CONTENT_TYPE_LATEST


class PrometheusMeter(Meter):
    """Records metrics in a registry of its own: `Memory.open(…, meter=PrometheusMeter())`."""

    def __init__(self, registry: CollectorRegistry | None = None, *, shared: Path | None = None) -> None:
        """`shared` is the directory of Prometheus' multiprocess mode, in which several processes aggregate their metrics."""
        self.registry = registry or CollectorRegistry()
        self._shared = shared
        self._metrics: dict[str, Any] = {}
        for metric in METRICS:
            # A gauge is not counted along the way, but read when the text is generated.
            about = metric.name, metric.tells, metric.labels
            if metric.kind == "counter":
                self._metrics[metric.name] = Counter(*about, registry=self.registry)
            elif metric.kind == "histogram":
                self._metrics[metric.name] = Histogram(*about, registry=self.registry, buckets=metric.buckets)

    def count(self, name: str, amount: float = 1.0, **labels: str) -> None:
        self._of(name, labels).inc(amount)

    def observe(self, name: str, value: float, **labels: str) -> None:
        self._of(name, labels).observe(value)

    def text(self, **gauges: float) -> bytes:
        """All metrics in Prometheus' text format, including other processes' if a directory is shared.

        `gauges` are values of this moment and this process, by the names of their metrics.
        """
        if self._shared is None:
            merged: Any = self.registry
        else:
            merged = CollectorRegistry()
            MultiProcessCollector(merged, path=str(self._shared))
        if not gauges:
            return generate_latest(merged)
        # Not summed across the processes that share a directory.
        families = [
            GaugeMetricFamily(metric.name, metric.tells, gauges[metric.name])
            for metric in METRICS
            if metric.name in gauges
        ]
        now: Any = SimpleNamespace(collect=lambda: families)
        return generate_latest(merged) + generate_latest(now)

    def _of(self, name: str, labels: dict[str, str]) -> Any:
        metric = self._metrics[name]
        return metric.labels(**labels) if labels else metric
