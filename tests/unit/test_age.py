"""What the manager does with a long past: nothing that is done again and again depends on its length.

SQLite counts the steps of its machine, which depend on the data alone: no test here measures time.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from tests.simulated.cluster import Cluster

from understudy.control.schemes.history import GENERATIONS_KEPT, History, started
from understudy.coordination.sqlite import SqliteStore
from understudy.model import hashing
from understudy.model.events import COUNT, GoalSet
from understudy.model.messages import Receipt, ReplicaStatus, Steps
from understudy.model.names import SliceId
from understudy.model.run import Rhythm
from understudy.model.spans import union
from understudy.reporting.report import told_kinds
from understudy.runtime import ledger as ledgers
from understudy.runtime.journal import LineFile, earlier, trim_outputs
from understudy.runtime.ledger import EARLIER, Ledger
from understudy.runtime.manager import Manager
from understudy.runtime.run_view import TOLD
from understudy.web.hub import Hub

RHYTHM = Rhythm(epoch=0, time=0.0, epoch_s=1.0)
YOUNG, OLD = 200, 6_000
"""Receipts and events; the older store has thirty times as many."""


def receipt(epoch: int, at: float | None = None, **changes: Any) -> Receipt:
    usual: dict[str, Any] = {"sink": "out", "rows": epoch % 5, "digest": f"d{epoch}"}
    return Receipt(epoch=epoch, at=epoch + 0.25 if at is None else at, **(usual | changes))


class Counted(sqlite3.Connection):
    """Counts the steps of SQLite's machine, by tens."""

    steps = 0

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.set_progress_handler(self._step, 10)

    def _step(self) -> int:
        Counted.steps += 10
        return 0


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], int]:
    """How many steps a call takes, for stores that are opened from now on."""
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, factory=Counted, **k))

    def count(call: Callable[[], Any]) -> int:
        before = Counted.steps
        call()
        return Counted.steps - before

    return count


def aged(path: Path, size: int) -> Path:
    """A store with as many receipts and events as a run of this age, all within the retention."""
    store = SqliteStore(path)
    store._database.execute("PRAGMA synchronous=OFF")
    store.receive([receipt(epoch) for epoch in range(size)], RHYTHM)
    cause = None
    for number in range(size // 4):
        name, generation = f"counts[{number % 2}]", number // 2 + 2
        lost = store.note(number, "node_lost", "lost", {"node": f"node-{number % 3}"}, None)
        cause = store.note(number, "assigned", "moved", {"slice": name, "node": "n", "generation": generation}, lost)
        fields = {"slice": name, "generation": generation, **Steps(done=True).model_dump()}
        store.note(number, "recovered", "back", fields, cause)
        store.note(number, "protection", "protected", {"slice": name, "scheme": "deployed", "seconds": None}, None)
    store.close()
    return path


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("age")
    return aged(folder / "young.db", YOUNG), aged(folder / "old.db", OLD)


QUESTIONS: dict[str, Callable[[SqliteStore], Any]] = {
    "delivered": lambda store: store.delivered("out"),
    "tally": lambda store: store.tally("out"),
    "duplicates": lambda store: store.duplicates("out"),
    "losses": lambda store: store.epochs_with_loss("out"),
    "delays": lambda store: store.delays("out"),
    "beyond": lambda store: store.receipts("out", store.delivered("out")),
    "cause": lambda store: store.latest_number(("assigned", "promoted"), "counts[1]"),
    "recovered": lambda store: store.latest("recovered"),
    "totals": lambda store: store.totals(),
    "newest events": lambda store: store.newest_events(100),
    "next events": lambda store: store.events(40, 100),
    "a receipt": lambda store: store.receive([receipt(store.delivered("out"))], RHYTHM),
    "a receipt again": lambda store: store.receive([receipt(3)], RHYTHM),
    "a note": lambda store: store.note(1.0, "recovered", "back", {"slice": "counts[1]", "generation": 9}, None),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_takes_as_many_steps_after_a_long_run_as_after_a_short_one(
    homes: tuple[Path, Path], steps: Callable[[Callable[[], Any]], int], question: str
) -> None:
    found = []
    for path in homes:
        store = SqliteStore(path)
        found.append(steps(lambda s=store: QUESTIONS[question](s)))  # type: ignore[misc]
        store.close()
    assert found[1] <= found[0] + 50


def test_a_manager_is_back_in_as_many_steps_after_a_long_run(
    homes: tuple[Path, Path], steps: Callable[[Callable[[], Any]], int], tmp_path: Path
) -> None:
    """All of its start: the store, the manager, the dashboard with its first look, and a tick."""
    found = []
    for path in homes:
        cluster = Cluster(tmp_path)

        def back(database: Path = path, cluster: Cluster = cluster) -> None:
            store = SqliteStore(database)
            store.keep({"run": cluster.manager.run.model_dump(), "phase": "gathering"})
            manager = Manager(tmp_path, cluster.topology, store, clock=lambda: 1.0, wall=lambda: 1.0)
            Hub(manager.view, CollectorRegistry()).refresh()
            manager.tick()
            store.close()

        found.append(steps(back))
    # The hub reads up to 2,000 events, of which the shorter run has 200.
    assert found[1] < found[0] + 2_000 * 15


def test_the_report_reads_a_limited_number_of_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(tmp_path, epochs=3)
    cluster.until(lambda: cluster.manager.state().phase.over)
    assert cluster.manager.report().told_since_s == 0.0
    monkeypatch.setattr("understudy.runtime.run_view.TOLD", 5)
    cluster.store.note(1.0, "fault", "x", {"spec": "kill:node-2@9s", "target": "node-2", "at": cluster.now}, None)
    report = cluster.manager.report()
    assert report.told_since_s > 0
    assert len(report.faults) == 1
    assert "goal" not in told_kinds(cluster.store.totals())
    for number in range(5):
        cluster.manager.journal.note(GoalSet(epochs=1, reason=f"{number}"))
    assert cluster.manager.report().faults == ()
    assert TOLD >= 10_000


# -- receipts


def short(path: Path, **kept: int) -> SqliteStore:
    return SqliteStore(path, **{"receipts_kept": 20, "events_kept": 20, **kept})


def test_old_receipts_are_dropped_and_the_report_stays_what_it_was(tmp_path: Path) -> None:
    given = [receipt(epoch, lost=("words[0]",) if epoch in (7, 60) else ()) for epoch in range(100)]
    everything, kept = SqliteStore(tmp_path / "all.db"), short(tmp_path / "short.db")
    for one in given:
        for store in (everything, kept):
            store.receive([one], RHYTHM)
    assert kept.tally("out") == everything.tally("out")
    assert kept.tally("out").digest == hashing.combine((r.epoch, r.digest, r.rows) for r in given)
    assert kept.delays("out") == everything.delays("out") == {250: 100}
    assert kept.epochs_with_loss("out") == everything.epochs_with_loss("out") == [7, 60]
    assert len(everything.receipts("out")) == 100
    assert [r.epoch for r in kept.receipts("out")] == [7, 60, *range(80, 100)], "a loss keeps its receipt"
    again = short(tmp_path / "short.db")
    assert (again.tally("out"), again.delivered("out")) == (kept.tally("out"), 100)


def test_what_was_written_twice_counts_once_however_old_it_is(tmp_path: Path) -> None:
    store = short(tmp_path / "manager.db")
    store.receive([receipt(epoch) for epoch in range(100)])
    recent, old = receipt(95, at=500.0), receipt(3, at=500.0)
    for one in (recent, recent, old, old):
        store.receive([one])
    assert store.duplicates("out") == 2
    store.receive([receipt(epoch) for epoch in range(100, 200)])
    store.receive([recent, old, receipt(4, at=9.0, fresh=False)])
    assert store.duplicates("out") == 2
    assert [r.epoch for r in store.receipts("out")][:2] == [3, 95], "the proof is kept"


def test_a_duplicate_that_is_ahead_of_a_gap_counts_too(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "manager.db")
    store.receive([receipt(0), receipt(2), receipt(2, at=77.0)])
    assert (store.delivered("out"), store.duplicates("out")) == (1, 1)
    store.receive([receipt(1)])
    assert (store.delivered("out"), store.duplicates("out"), store.tally("out").duplicates) == (3, 1, 1)


def test_a_failed_transaction_leaves_the_tally_alone(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "manager.db")
    store.receive([receipt(0)])
    before = store.tally("out")
    with pytest.raises(sqlite3.IntegrityError):
        store.receive([receipt(1), receipt(2).model_copy(update={"rows": None})])
    assert store.tally("out") == before == SqliteStore(tmp_path / "manager.db").tally("out")


def test_a_store_of_before_is_counted_once(tmp_path: Path) -> None:
    """Files without tallies: all their receipts and events are there."""
    path = tmp_path / "manager.db"
    store = SqliteStore(path)
    store.receive([receipt(epoch) for epoch in range(30)] + [receipt(9, at=99.0)])
    cause = store.note(1.0, "assigned", "", {"slice": "a[0]", "generation": 1}, None)
    store.note(1.0, "rolled_back", "", {"slice": "a[0]", "stood_in_s": 1.5, "false_alarm": True}, None)
    expected = (store.tally("out"), store.totals(), store.latest_number(("assigned",), "a[0]"))
    for table in ("tallies", "delays", "latest", "totals"):
        store._database.execute(f"DELETE FROM {table}")
    store._database.execute("PRAGMA user_version = 0")
    again = SqliteStore(path)
    assert (again.tally("out"), again.totals(), again.latest_number(("assigned",), "a[0]")) == expected
    assert (expected[0].duplicates, expected[2]) == (1, cause)
    assert SqliteStore(path).totals() == expected[1], "not a second time"


# -- events


def test_old_events_are_dropped_and_what_is_asked_of_them_stays(tmp_path: Path) -> None:
    store = short(tmp_path / "manager.db")
    first = store.note(0.0, "recovered", "back", {"slice": "a[0]", "generation": 5}, None)
    for number in range(600):
        store.note(
            1.0, "rolled_back", f"{number}", {"slice": "b[0]", "stood_in_s": 0.5, "false_alarm": number % 2}, None
        )
    numbers = [event.number for event in store.events()]
    assert numbers[0] == first, "the last of its kind about its slice stays"
    assert len(numbers) < 20 + 256 + 2
    assert numbers[-1] == 601
    totals = store.totals()["rolled_back"]
    assert (totals[COUNT], totals["stood_in_s"], totals["false_alarm"]) == (600.0, 300.0, 300.0)
    assert store.latest("recovered")["a[0]"].fields["generation"] == 5


def drop_events(cluster: Cluster) -> None:
    """All that need not be kept."""
    assert isinstance(cluster.store, SqliteStore)
    cluster.store._events._drop(10**9)


def test_a_recovery_is_noted_once_though_its_event_is_old(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.until(lambda: cluster.delivered > 2)
    cluster.kill("node-2")
    cluster.until(lambda: bool(cluster.store.latest("recovered")))
    cluster.steps(10.0)
    before = cluster.manager.view.event_counts()["recovered"]
    for _ in range(600):
        cluster.manager.journal.note(GoalSet(epochs=1, reason="something else"))
    drop_events(cluster)
    cluster.restart_manager()
    cluster.steps(2.0)
    assert cluster.manager.view.event_counts()["recovered"] == before


def test_metrics_count_all_events_of_the_run(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    for _ in range(50):
        cluster.manager.journal.note(GoalSet(epochs=1, reason="x"))
    drop_events(cluster)
    hub = Hub(cluster.manager.view, CollectorRegistry())
    cluster.manager.journal.note(GoalSet(epochs=1, reason="x"))
    hub.refresh()
    assert hub.kinds["goal"] == 51


def test_a_new_dashboard_begins_with_the_epochs_that_come(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.until(lambda: cluster.delivered > 5)
    hub = Hub(cluster.manager.view, CollectorRegistry())
    assert hub.refresh().samples[0].latency_s is None
    delivered = cluster.delivered
    cluster.until(lambda: cluster.delivered > delivered)
    assert hub.refresh().samples[0].latency_s is not None


# -- the ledger


def status(generation: int, **more: Any) -> ReplicaStatus:
    return ReplicaStatus(slice=SliceId("a", 0), generation=generation, **more)


def test_replicas_that_are_long_gone_are_added_up() -> None:
    ledger = Ledger(None)
    for generation in range(1, 101):
        one = {
            "rows_in": 10,
            "bytes_shipped": 3,
            "read_back": 1,
            "epoch": generation,
            "gaps": ((generation, generation),),
        }
        ledger.see([status(generation, **one)])
    ledger.compact({SliceId("a", 0): frozenset({2, 100})})
    kept = sorted(replica.generation for replica in ledger.replicas)
    assert kept == [2, 95, 96, 97, 98, 99, 100], "alive, the last four that are gone, and one for all others"
    assert sum(replica.rows_in for replica in ledger.replicas) == 1000
    assert sum(replica.bytes_shipped for replica in ledger.replicas) == 300
    assert sum(replica.read_back for replica in ledger.replicas) == 100
    assert union(span for replica in ledger.replicas for span in replica.gaps) == ((1, 100),)
    again = Ledger(json.loads(json.dumps(ledger.dump())))
    assert sorted(again.replicas, key=lambda r: r.generation) == sorted(ledger.replicas, key=lambda r: r.generation)


def test_a_zombie_that_was_added_up_does_not_count_twice() -> None:
    ledger = Ledger(None)
    ledger.see([status(generation, rows_in=10) for generation in range(1, 11)])
    ledger.compact({SliceId("a", 0): frozenset({1, 10})})
    ledger.see([status(3, rows_in=15), status(1, rows_in=20), status(11, rows_in=1)])
    assert sum(replica.rows_in for replica in ledger.replicas) == 90 + 20 + 1


def test_nodes_that_are_long_gone_are_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledgers, "KEPT_NODES", 10)
    ledger = Ledger(None)
    for number in range(100):
        ledger.see_node(f"node-{number}", 2.0, number)
        ledger.see_node("node-0", 2.0, 1)
        ledger.compact({})
    assert len(ledger.nodes) == 10
    assert "node-0" in ledger.nodes, "it is still there"
    assert ledger.nodes[EARLIER].cpu_s == 2.0 * 91
    assert sum(node.cpu_s for node in ledger.nodes.values()) == 200.0


def test_a_run_with_many_recoveries_keeps_few_replicas(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.until(lambda: cluster.delivered > 2)
    for number in range(16):
        name = f"node-{number % 2 + 1}"
        cluster.kill(name)
        cluster.steps(2.0)
        cluster.start_node(name)
        cluster.steps(1.0)
    manager = cluster.manager
    assert max(a.generation for a in cluster.store.assignments()) > 8
    kept = json.dumps(cluster.store.fact("ledger"))
    slices = len(cluster.layout.slices)
    assert len(manager.observer.ledger.replicas) <= slices * (2 + ledgers.KEPT_REPLICAS + 1) + slices
    assert kept.count('"generation"') <= slices * (2 + ledgers.KEPT_REPLICAS + 1)
    assert len(manager.observer.protections._seen) <= 2 * slices


def test_a_history_knows_the_last_replicas_only() -> None:
    history = History("a[0]")
    for generation in range(1, 500):
        history = started(history, generation, Steps(done=True), fresh=False)
    assert len(history.generations) == GENERATIONS_KEPT
    assert started(history, 499, Steps(done=True), fresh=False) is history


# -- files


def test_a_journal_has_two_parts_at_most(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    journal = LineFile(path, limit=100)
    for number in range(98):
        journal.append({"number": f"{number:05d}"})
    lines = [*earlier(path).read_text().splitlines(), *path.read_text().splitlines()]
    kept = [json.loads(line)["number"] for line in lines]
    assert kept == [f"{number:05d}" for number in range(90, 98)], "the newest, none left out"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["events.jsonl", "events.jsonl.1"]


def test_the_output_of_a_process_is_cut_while_it_writes(tmp_path: Path) -> None:
    path, other = tmp_path / "node-1.log", tmp_path / "node-2.log"
    other.write_text("short\n")
    with path.open("ab") as file:
        file.write(b"x" * 100)
        file.flush()
        trim_outputs([path, other, tmp_path / "not-there.log"], limit=100)
        file.write(b"after")
        file.flush()
    assert path.read_bytes() == b"after", "no hole before it"
    assert earlier(path).read_bytes() == b"x" * 100
    assert other.read_text() == "short\n"
    assert not earlier(other).exists()
