"""A power cut at every step: what was promised is there, and the rest is recomputed.

One epoch after the other goes through a live source with two slices, an operator with state that ships checkpoints, and
a file sink, all on a disk that forgets what was not synced. After the cut the same code goes on from what is left.
"""

from __future__ import annotations

import copy
import json
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from tests.builders import one
from tests.checkpoints import FakeQuery
from tests.power import Fate, Image, Platter, PowerCut, PowerDisk, forgotten, powered, random_fate, torn, write
from tests.sites import a_context, deployed

from understudy.checkpoints.file_store import Store
from understudy.checkpoints.interface import Shipped
from understudy.checkpoints.spark_files import committed
from understudy.control.application.fusion import lay_out
from understudy.control.replica.ends import Write
from understudy.control.replica.shipping import Stage, after
from understudy.log import bag
from understudy.log.bag import DamagedBag
from understudy.log.disk import TEMPORARY
from understudy.model.messages import Receipt
from understudy.model.names import SliceId
from understudy.model.topology import Topology
from understudy.sinks import JsonLines
from understudy.sinks.directory import DirectoryWriter, Owner
from understudy.sinks.jsonlines import encode
from understudy.sources.interface import Source, SourceReader
from understudy.stream.context import NodeContext
from understudy.stream.shipper import Shipment, Shipper
from understudy.stream.sink import SinkReplica
from understudy.stream.source import SourceReplica

EPOCHS, SHIP_EVERY, STEP = 7, 2, 3
LIVE = (SliceId("live", 0), SliceId("live", 1))
SUMS, OUT = SliceId("sums", 0), SliceId("out", 0)
SCHEMA = pa.schema({"n": pa.int64()})
SUM = pa.schema({"to": pa.int64(), "sum": pa.int64()})


@dataclass
class World:
    """What no power cut touches: rows that arrive from outside, and what was promised to somebody outside."""

    arrived: int = 0
    receipts: dict[int, Receipt] = field(default_factory=dict)
    lives: int = 0
    states: dict[int, tuple[int, int]] = field(default_factory=lambda: {-1: (0, 0)})
    promised: int = -1


@dataclass
class Live(Source):
    """Between two cuts some rows arrive, so an epoch that is cut again would hold others."""

    world: World
    recorded = True
    schema: pa.Schema = field(default_factory=lambda: SCHEMA)

    def open(self, slice_index: int, slices: int, epoch_s: float) -> SourceReader:
        return LiveReader(self.world, slice_index, slices)


@dataclass
class LiveReader(SourceReader):
    world: World
    index: int
    slices: int

    def cut(self, epoch: int, start: Any) -> Any:
        self.world.arrived += STEP
        return self.world.arrived

    def read(self, epoch: int, start: Any, end: Any) -> pa.Table:
        mine = [n for n in range(start or 0, end) if n % self.slices == self.index]
        return pa.table({"n": pa.array(mine, pa.int64())})


class Machine:
    """Everything that runs between two power cuts. One thread, in a fixed order; `take_over` at an epoch lets another
    process publish and ship from there on, which has made the same bags and held them back."""

    def __init__(self, world: World, home: Path, disk: PowerDisk, take_over: int | None = None) -> None:
        self.world, self.home, self.disk, self.take_over = world, home, disk, take_over
        app = Topology("power")
        live = app.source("live", Live(world), slices=2)
        sums = app.operator(live, name="sums", key="n")(one)
        app.sink("out", sums, JsonLines("out"))
        layout = lay_out(app, {"sums": True})
        self.schemas = {"live": SCHEMA, "sums": SUM}
        self.site = a_context(home, app, disk, EPOCHS, layout=layout, schemas=self.schemas)
        self.sources = {slice_id: self._source(slice_id) for slice_id in LIVE}
        self.local = home.with_name(f"{home.name}-local")
        # It is the node's own: gone with the power.
        shutil.rmtree(self.local, ignore_errors=True)
        world.lives += 1
        self._restore()
        self._open_sink()

    # -- coming up

    def _source(self, slice_id: SliceId, rewind: int | None = None) -> SourceReplica:
        source = SourceReplica(self.site, deployed(slice_id, rewind=rewind))
        source.step()
        return source

    def _restore(self) -> None:
        self.store = Store(self.home / "checkpoints", SUMS, self.disk)
        marker, self.shipped = self.store.restore(self.local, None)
        self.done = -1 if marker is None else marker.epoch
        assert self.done >= self.world.promised, "a checkpoint that was promised is gone"
        self.query = FakeQuery(self.local, self.done)
        self.to, self.total = self.world.states[self.done]
        for epoch in range(self.site.log.acknowledged(OUT, SUMS) + 1, self.done + 1):
            # The state has moved on, so nobody will make this bag again.
            stored = self.site.log.fetch(SUMS, epoch)
            assert stored is not None, f"the bag of epoch {epoch} is older than the checkpoint, and gone"
            assert bag.is_whole(stored.path)

    def _open_sink(self) -> None:
        self.sink = SinkReplica(self.site, deployed(OUT))
        path = self.home / "out" / "out"
        self.writer = DirectoryWriter(path, Owner("run-1", "out"), "jsonl", encode, self.disk)
        for epoch, receipt in self.world.receipts.items():
            content = self.writer.file(epoch).read_bytes()
            assert len(content.splitlines()) == receipt.rows, "a delivered epoch is gone"
        self.delivered = len(self.world.receipts)

    # -- running

    def run(self) -> None:
        while self.delivered < EPOCHS:
            before = (self.done, self.delivered)
            for slice_id in LIVE:
                self._publish(slice_id)
            self._operate()
            self._deliver()
            assert (self.done, self.delivered) != before or self.done < EPOCHS - 1, "nothing moves any more"

    def _publish(self, slice_id: SliceId) -> None:
        self.sources[slice_id].step()

    def _operate(self) -> None:
        epoch = self.done + 1
        if epoch >= EPOCHS:
            return
        if epoch == self.take_over:
            # Another process: it knows nothing of what this one has published and not yet synced.
            self.site = a_context(
                self.home, self.site.topology, self.disk, EPOCHS, layout=self.site.layout, schemas=self.schemas
            )
        rows = self._input(epoch)
        if rows is None:
            return
        self.to, self.total = self.to + len(rows), self.total + sum(rows)
        self.world.states[epoch] = (self.to, self.total)
        made = bag.make(SUMS, epoch, pa.table({"to": [self.to], "sum": [self.total]}, SUM), ())
        self.site.log.publish(made, durable=False)
        self.query.run()
        self.done = epoch
        if (epoch + 1) % SHIP_EVERY == 0:
            self._ship(epoch)

    def _input(self, epoch: int) -> list[int] | None:
        """What the sources have published; a damaged bag is made again, as the manager would see to it."""
        rows: list[int] = []
        for channel in self.site.layout.channels(SUMS):
            try:
                stored = self.site.log.fetch(channel.upstream, epoch)
                if stored is None:
                    return None
                rows += stored.rows(channel, SCHEMA)["n"].to_pylist()
            except DamagedBag:
                self.sources[channel.upstream] = self._source(channel.upstream, rewind=epoch)
                return None
        return rows

    def _ship(self, epoch: int) -> None:
        shipped = ship(shipping_replica(self.site, self.store, self.local, self.shipped, self.world.lives), epoch)
        for stage in shipped:
            if stage is Stage.SHIP:
                self.world.promised = epoch

    def _deliver(self) -> None:
        """The manager stores a receipt, durably, as soon as the sink sends it."""
        epoch = self.delivered
        if epoch > self.done or self.site.log.fetch(SUMS, epoch) is None:
            return
        self.sink._deliver(self.writer, Write(epoch))
        self.world.receipts[epoch] = self.sink.receipts()[-1]
        self.sink.stored(epoch)
        self.delivered += 1


def shipping_replica(site: NodeContext, store: Store, local: Path, shipped: Shipped, generation: int) -> Any:
    """As much of a replica as shipping needs, with a query that has committed everything."""
    query = SimpleNamespace(
        await_committed=lambda *_: True,
        directory=local,
        watermarks=lambda _: (),
        checkpoint=lambda: committed(local),
    )
    return SimpleNamespace(
        slice=SUMS,
        store=store,
        context=site,
        deploy=deployed(SUMS, generation, ship_every=SHIP_EVERY),
        vertex=SimpleNamespace(stateful=True),
        queries=SimpleNamespace(current=query, shipped=shipped),
        outbox=SimpleNamespace(fenced=False),
        inputs=SimpleNamespace(upstream=LIVE),
        live=SimpleNamespace(add=lambda **_: None, update=lambda **_: None),
    )


def ship(replica: Any, epoch: int) -> Iterator[Stage]:
    """Every stage of a shipment, one after the other; raises what goes wrong."""
    shipper, shipment = Shipper(replica), Shipment(replica, epoch)
    while (stage := shipment.stage) is not None:
        assert shipper._pass(shipment, stage)
        yield stage
        shipment.stage = after(stage, shipment)


def check_output(world: World, home: Path) -> None:
    """Every row once, in every epoch: the sum of all rows up to the last one follows from its number alone."""
    files = sorted((home / "out" / "out").glob("epoch-*.jsonl"))
    epochs = [json.loads(path.read_bytes()) for path in files]
    assert len(epochs) == EPOCHS
    assert [row["sum"] for row in epochs] == [row["to"] * (row["to"] - 1) // 2 for row in epochs]
    assert [row["to"] for row in epochs] == sorted({row["to"] for row in epochs})
    assert [receipt.epoch for receipt in world.receipts.values()] == list(range(EPOCHS))


@dataclass
class Life:
    """One run of a machine until it ends or its power is cut."""

    home: Path
    world: World
    take_over: int | None = None

    def run(self, on_step: Callable[[Platter], None] = lambda _: None) -> None:
        disk = powered(self.home, lambda: on_step(disk.platter))
        try:
            Machine(self.world, self.home, disk, self.take_over).run()
            check_output(self.world, self.home)
        finally:
            disk.platter.close()


@pytest.mark.parametrize("take_over", [None, 3])
@pytest.mark.parametrize("fate", [forgotten, torn])
def test_a_cut_at_every_step(tmp_path: Path, fate: Callable[[], Fate], take_over: int | None) -> None:
    """Takes down what a cut would leave, at every step of one run, and goes on from each of these."""
    left: list[tuple[Image, World]] = []
    seen: set[str] = set()
    world = World()

    def cut(platter: Platter) -> None:
        image = platter.left(tmp_path / "home", fate())
        finished = sorted(item for item in image.items() if TEMPORARY not in item[0])
        state = repr((finished, world.arrived, world.promised, len(world.receipts)))
        if state not in seen:
            seen.add(state)
            left.append((image, copy.deepcopy(world)))

    Life(tmp_path / "home", world, take_over).run(cut)
    assert len(left) > 50
    for number, (image, then) in enumerate(left[:: 1 if fate is forgotten else 4]):
        write(image, tmp_path / str(number))
        Life(tmp_path / str(number), then).run()
        shutil.rmtree(tmp_path / str(number))


@pytest.mark.parametrize("seed", range(12))
def test_cut_after_cut_with_whatever_the_disk_had_written(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    world, home, survived = World(), tmp_path / "home", 0
    for number in range(20):
        countdown, into = chance.randint(1, 300) if number < 19 else -1, tmp_path / f"home-{number}"

        def cut(platter: Platter, home: Path = home, into: Path = into) -> None:
            nonlocal countdown
            countdown -= 1
            if countdown == 0:
                write(platter.left(home, random_fate(chance.randint(0, 10**6))), into)
                raise PowerCut

        try:
            Life(home, world, chance.choice([None, 3, 5])).run(cut)
        except PowerCut:
            home, survived = into, survived + 1
            continue
        break
    assert survived >= 1
    assert len(world.receipts) == EPOCHS
