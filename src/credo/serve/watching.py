"""What can be seen from outside: metrics as Prometheus reads them."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from credo.serve.service import Service

__all__ = ["metrics"]


class _Collector:
    """The numbers of a service, read when they are asked for."""

    def __init__(self, service: Service) -> None:
        self.service = service

    def collect(self) -> Iterator[Metric]:
        service = self.service
        one = {
            "credo_journal_lines": ("Lines that were written.", service.writer.lines),
            "credo_journal_transactions": ("Transactions that were written.", service.writer.transactions),
            "credo_requests_refused": ("Requests that were refused.", service.refused),
        }
        for name, (words, value) in one.items():
            yield CounterMetricFamily(name, words, value=value)
        yield GaugeMetricFamily(
            "credo_waiting_lines", "Lines that wait to be written.", value=service.writer.waiting
        )
        yield GaugeMetricFamily(
            "credo_waiting_items", "Items that wait to be learned.", value=service.learner.waiting
        )
        failing = bool(service.writer.failure or service.snapshots.failure)
        yield GaugeMetricFamily("credo_disk_failing", "Whether the latest write failed.", value=failing)
        learned = CounterMetricFamily(
            "credo_lines_taken", "Lines that a model took.", labels=["model", "kind"]
        )
        ready = GaugeMetricFamily("credo_model_ready", "Whether a model answers.", labels=["model"])
        seq = GaugeMetricFamily("credo_model_line", "The last line that it took.", labels=["model"])
        for hosted in list(service.hosts.values()):
            for kind, count in (("learn", hosted.taken - hosted.decided), ("bandit", hosted.decided)):
                learned.add_metric([hosted.name, kind], count)
            learned.add_metric([hosted.name, "predict"], hosted.forecasts)
            ready.add_metric([hosted.name], hosted.stage == "ready")
            seq.add_metric([hosted.name], hosted.applied)
        yield from (learned, ready, seq)


def metrics(service: Service) -> bytes:
    """The metrics in the text format of Prometheus."""
    registry = CollectorRegistry()
    registry.register(_Collector(service))
    return generate_latest(registry)
