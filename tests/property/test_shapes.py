"""Load shapes: the same on every machine, from any epoch, and shaped as their names say."""

from __future__ import annotations

from statistics import mean

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.errors import InvalidInput
from understudy.sources import Generator
from understudy.sources.shapes import SHAPES, Diurnal, Messages, Rate, Spikes, Steps, named, rows_at


def _make(epoch: int, slice_index: int, rows: int, rng: np.random.Generator) -> pa.Table:
    return pa.table({"n": rng.integers(0, 1000, rows)})


@settings(deadline=None)
@given(st.sampled_from(sorted(SHAPES)), st.floats(0.5, 5000), st.sampled_from([0.1, 0.5, 1.0]), st.integers(0, 2000))
def test_any_epoch_of_a_shape_is_generated_alone(name: str, rate: float, epoch_s: float, epoch: int) -> None:
    shape = named(name, rate)
    source = Generator(_make, "n long", shape, seed=3)
    reader = source.open(0, 2, epoch_s)
    first = reader.read(epoch, None, None)
    assert first.equals(source.open(0, 2, epoch_s).read(epoch, None, None))
    assert abs(first.num_rows - shape(epoch * epoch_s) * epoch_s) <= 0.5 + 1e-6


def test_spikes_last_two_seconds_in_twenty() -> None:
    rates = [Spikes(100)(float(second)) for second in range(60)]
    assert [second for second, rate in enumerate(rates) if rate > 100] == [18, 19, 38, 39, 58, 59]
    assert max(rates) == 500


def test_days_and_steps() -> None:
    day = [Diurnal(100, low=0.2, day_s=100)(float(second)) for second in range(100)]
    assert (day[0], max(day), day.index(max(day))) == (20.0, 100.0, 50)
    assert np.abs(np.diff(day)).max() < 4
    assert [Steps(10, (1, 4), 5)(second) for second in (0.0, 4.9, 5.0, 10.0)] == [10, 10, 40, 10]


def test_a_month_of_messages_has_a_rhythm_and_bursts() -> None:
    month = [Messages(100)(float(second)) for second in range(720)]
    assert 80 < mean(month) < 160
    assert min(month) < 30
    assert max(month) > 350
    assert month != [Messages(100, seed=1)(float(second)) for second in range(720)]
    night, evening = ([month[24 * day + hour] for day in range(30)] for hour in (4, 21))
    assert sum(n < e for n, e in zip(night, evening, strict=True)) >= 28
    # Frozen: replaying an epoch after an upgrade must give the same rows.
    assert [rows_at(Messages(1000), float(second), 1.0) for second in (0, 17, 100, 719)] == [583, 1147, 227, 1007]


@pytest.mark.parametrize("rate", [lambda _: -1.0, lambda _: float("nan"), lambda _: float("inf")])
def test_a_rate_that_means_nothing(rate: Rate) -> None:
    with pytest.raises(InvalidInput, match="the rate at 2 s"):
        Generator(_make, "n long", rate).open(0, 1, 1.0).read(2, None, None)


def test_shapes_have_names() -> None:
    with pytest.raises(InvalidInput, match="no load shape 'square'"):
        named("square", 1)
