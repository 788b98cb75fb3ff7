"""`/metrics` for Prometheus: base units, counters that end in _total, one meaning per name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from understudy.model.events import BY_KIND
from understudy.model.page import Health, SliceLook, View
from understudy.model.snapshot import Phase
from understudy.web.hub import Hub

_SLICE = ("operator", "slice")


class RunCollector(Collector):
    """Reads the shared view when it is scraped, so that counting costs nothing in between."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def describe(self) -> list[Metric]:
        """Nothing is known by name beforehand; without this the registry would collect on registration."""
        return []

    def collect(self) -> Iterator[Metric]:
        view = self._hub.view()
        yield from _run(view)
        yield from _nodes(view)
        yield from _slices(view.slices)
        events = CounterMetricFamily("understudy_events", "Things that happened, by kind.", labels=["kind"])
        # From zero on: an increase from nothing to one is not seen by rules that look for one.
        for kind, number in sorted({**dict.fromkeys(BY_KIND, 0), **self._hub.kinds}.items()):
            events.add_metric([kind], number)
        yield events
        yield GaugeMetricFamily("understudy_dashboard_pages", "Dashboard pages that are open.", self._hub.pages)


def register(hub: Hub, registry: CollectorRegistry) -> None:
    registry.register(RunCollector(hub))


def _run(view: View) -> Iterator[Metric]:
    yield InfoMetricFamily("understudy_run", "The run this manager leads.", {"app": view.app, "run": view.run})
    phases = GaugeMetricFamily("understudy_run_phase", "1 for the phase the run is in, else 0.", labels=["phase"])
    for phase in Phase:
        phases.add_metric([phase], float(view.phase is phase))
    yield phases
    yield GaugeMetricFamily("understudy_run_elapsed_seconds", "Time since the first row.", view.elapsed_s)
    delivered = CounterMetricFamily(
        "understudy_epochs_delivered", "Epochs a sink has delivered without a gap.", labels=["sink"]
    )
    for sink, epochs in sorted(view.delivered.items()):
        delivered.add_metric([sink], epochs)
    yield delivered


def _nodes(view: View) -> Iterator[Metric]:
    labels = ["node", "domain"]
    up = GaugeMetricFamily("understudy_node_up", "1 while a node is connected and ready.", labels=labels)
    draining = GaugeMetricFamily("understudy_node_draining", "1 while a node is being drained.", labels=labels)
    silent = GaugeMetricFamily("understudy_node_heartbeat_age_seconds", "Time since its last heartbeat.", labels=labels)
    cpu = CounterMetricFamily("understudy_node_cpu_seconds", "CPU time used by a node and its JVM.", labels=labels)
    memory = GaugeMetricFamily("understudy_node_memory_bytes", "Memory used by a node and its JVM.", labels=labels)
    replicas = GaugeMetricFamily(
        "understudy_node_replicas", "Replicas a node hosts.", labels=["node", "domain", "role"]
    )
    for node in view.nodes:
        key = [node.name, node.domain]
        up.add_metric(key, float(node.connected and node.ready))
        draining.add_metric(key, float(node.draining))
        silent.add_metric(key, node.silent_s)
        cpu.add_metric(key, node.cpu_s)
        memory.add_metric(key, node.memory_bytes)
        replicas.add_metric([*key, "primary"], sum(replica.primary for replica in node.replicas))
        replicas.add_metric([*key, "secondary"], sum(not replica.primary for replica in node.replicas))
    yield from (up, draining, silent, cpu, memory, replicas)
    yield GaugeMetricFamily("understudy_nodes_lost", "Nodes that were given up and have not come back.", len(view.lost))


def _slices(slices: Sequence[SliceLook]) -> Iterator[Metric]:
    yield _health(slices)
    schemes = GaugeMetricFamily(
        "understudy_slice_scheme_info", "The scheme a slice shall have and has.", labels=[*_SLICE, "scheme", "reached"]
    )
    for entry in slices:
        schemes.add_metric([*_key(entry), entry.scheme, entry.protection], 1)
    yield schemes
    gauges = {
        "epoch": ("understudy_slice_epoch", "The newest epoch a slice has finished."),
        "lag": ("understudy_slice_lag_epochs", "Epochs a slice is behind the newest of the run."),
        "state_bytes": ("understudy_slice_state_bytes", "State a slice keeps."),
    }
    for field, (name, text) in gauges.items():
        yield _each(GaugeMetricFamily(name, text, labels=_SLICE), slices, field)
    counters = {
        "rows_in": ("understudy_slice_read_rows", "Rows a slice's primary has read."),
        "rows_out": ("understudy_slice_emitted_rows", "Rows a slice's primary has emitted."),
        "bytes_published": ("understudy_slice_published_bytes", "Bags a slice's primary has published."),
        "bytes_shipped": ("understudy_slice_shipped_bytes", "Checkpoints a slice's primary has shipped."),
    }
    for field, (name, text) in counters.items():
        yield _each(CounterMetricFamily(name, text, labels=_SLICE), slices, field)


def _health(slices: Sequence[SliceLook]) -> Metric:
    found = GaugeMetricFamily(
        "understudy_slice_health", "1 for the health a slice has, else 0.", labels=[*_SLICE, "health"]
    )
    for entry in slices:
        for health in Health:
            found.add_metric([*_key(entry), health], float(entry.health is health))
    return found


def _each(family: GaugeMetricFamily | CounterMetricFamily, slices: Sequence[SliceLook], field: str) -> Metric:
    for entry in slices:
        family.add_metric(_key(entry), getattr(entry, field))
    return family


def _key(entry: SliceLook) -> list[str]:
    return [entry.slice.partition("[")[0], entry.slice]
