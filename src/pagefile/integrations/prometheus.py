"""Pagefile's measurements as Prometheus metrics."""

from typing import Any

from pagefile.errors import MissingExtraError
from pagefile.memory.metering import METRICS
from pagefile.ports import Meter

try:
    from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
    from prometheus_client.exposition import CONTENT_TYPE_LATEST
except ImportError as error:
    raise MissingExtraError.of("service", "Prometheus metrics") from error

CONTENT_TYPE = CONTENT_TYPE_LATEST


class PrometheusMeter(Meter):
    """Takes measurements into a registry of its own: `Memory.open(…, meter=PrometheusMeter())`."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self._metrics: dict[str, Any] = {}
        for metric in METRICS:
            if metric.kind == "counter":
                made: Any = Counter(metric.name, metric.tells, metric.labels, registry=self.registry)
            else:
                made = Histogram(
                    metric.name, metric.tells, metric.labels, buckets=metric.buckets, registry=self.registry
                )
            self._metrics[metric.name] = made

    def count(self, name: str, amount: float = 1.0, **labels: str) -> None:
        self._of(name, labels).inc(amount)

    def observe(self, name: str, value: float, **labels: str) -> None:
        self._of(name, labels).observe(value)

    def text(self) -> bytes:
        """Everything in Prometheus' text format."""
        return generate_latest(self.registry)

    def _of(self, name: str, labels: dict[str, str]) -> Any:
        metric = self._metrics[name]
        return metric.labels(**labels) if labels else metric
