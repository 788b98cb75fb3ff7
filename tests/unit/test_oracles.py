"""The oracles themselves: independent of the project, and right in cases small enough to see."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tests.oracles import joins, lines, operators, windows
from tests.oracles.delivered import differences
from tests.oracles.rows import Epochs, Row, dealt
from tests.oracles.windows import EARLY

ROOT = Path(__file__).parents[2]
MODULES = sorted(path.stem for path in (ROOT / "tests" / "oracles").glob("[a-z]*.py"))
SECOND = timedelta(seconds=1)


def at(second: float, **more: object) -> Row:
    return {"at": EARLY + second * SECOND, "user": 1, **more}


def test_no_oracle_imports_the_project() -> None:
    assert len(MODULES) > 5
    imports = "; ".join(f"import tests.oracles.{name}" for name in MODULES)
    check = "import sys; assert not [n for n in sys.modules if n.split('.')[0] in ('understudy', 'pyspark')]"
    apart = "assert not [n for n, m in sys.modules.items() if '/examples/' in (getattr(m, '__file__', '') or '')]"
    subprocess.run([sys.executable, "-c", f"{imports}; {check}; {apart}"], cwd=ROOT, check=True)


def test_the_slowest_stream_holds_the_watermark_and_an_empty_one_holds_it_at_zero() -> None:
    dense: Epochs = [[at(10)], [at(20)], [at(30)], [at(40)]]
    sparse: Epochs = [[], [at(50)], [], []]
    marks = windows.watermarks((dense, 2 * SECOND), (sparse, 5 * SECOND))
    assert [(mark - EARLY) / SECOND for mark in marks] == [0, 0, 18, 28]


def test_a_window_closes_once_and_a_late_row_is_dropped() -> None:
    rows: Epochs = [[at(0), at(1)], [at(9)], [at(2)], [at(2)], [at(20)], []]
    closed = windows.closed_windows(rows, 3 * SECOND, 2 * SECOND)
    # The third epoch's row is behind the newest watermark, 7 s, but not behind the one before; the fourth's is.
    assert [len(epoch) for epoch in closed] == [0, 0, 1, 0, 0, 1]
    assert closed[2] == Counter([(EARLY, 3)])
    assert closed[5] == Counter([(EARLY + 9 * SECOND, 1)])


def test_sliding_windows_show_what_an_epoch_touches() -> None:
    rows: Epochs = [[at(1, n=5)], [at(3, n=1)]]
    touched = windows.updated_windows([(rows, SECOND)], 4 * SECOND, 2 * SECOND, "n")
    assert touched[0] == Counter([(EARLY, 1, 5), (EARLY - 2 * SECOND, 1, 5)])
    assert touched[1] == Counter([(EARLY, 2, 6), (EARLY + 2 * SECOND, 1, 1)])


def test_sessions_merge_across_epochs_and_end_by_the_watermark() -> None:
    rows: Epochs = [[at(1), at(9)], [at(3)], [at(30)], []]
    over = windows.sessions(rows, "user", 3 * SECOND, 5 * SECOND)
    one, other = (EARLY + SECOND, EARLY + 6 * SECOND, 2), (EARLY + 9 * SECOND, EARLY + 12 * SECOND, 1)
    assert over == [Counter(), Counter(), Counter(), Counter([(1, *one), (1, *other)])]


def test_a_repeated_key_comes_through_once_within_the_delay() -> None:
    rows: Epochs = [[at(1, id=1), at(1, id=1)], [at(2, id=1)], [at(20, id=2)], [], [at(21, id=1)]]
    through = windows.first_of_each(rows, "id", 5 * SECOND)
    assert [[row["id"] for row in epoch] for epoch in through] == [[1], [], [2], [], [1]]


def test_a_state_times_out_when_the_watermark_has_passed() -> None:
    rows: Epochs = [[at(1, n=7)], [at(20, user=2, n=1)], []]
    out = windows.with_timeout(rows, "user", "n", 5 * SECOND, 2 * SECOND)
    assert out == [Counter([(1, 1, 7, False)]), Counter([(2, 1, 1, False)]), Counter([(1, 1, 7, True)])]


def test_an_outer_join_gives_up_a_row_when_no_partner_can_come() -> None:
    left: Epochs = [[at(1, n=1), at(2, n=2)], [at(30, n=3)], []]
    right: Epochs = [[], [at(1.5)], [at(30)]]
    ahead: Epochs = [[at(90)], [at(91)], [at(92)]]

    def take(one: Row, other: Row | None) -> tuple[int, bool]:
        return one["n"], other is not None

    within = SECOND, SECOND
    paired = joins.left_outer((left, 5 * SECOND), (right, 30 * SECOND), "user", within, take)
    assert paired == [Counter(), Counter([(1, True), (2, True)]), Counter([(3, True)])]
    alone = joins.left_outer((left, 5 * SECOND), (ahead, 5 * SECOND), "user", within, take)
    assert alone == [Counter(), Counter(), Counter([(1, False), (2, False)])]


def test_sums_go_on_without_what_was_lost() -> None:
    rows: Epochs = [[{"key": 1, "value": 1}], [{"key": 1, "value": 10}], [{"key": 1, "value": 100}]]
    assert operators.sums(rows, "key", "value", frozenset({1})) == [{1: (1, 1)}, {}, {1: (2, 101)}]


def test_fractions_of_rows_add_up() -> None:
    rows = [{"n": n} for n in range(5)]
    assert [len(epoch) for epoch in dealt(rows, 0.7, 6, 1.0)] == [0, 1, 1, 0, 1, 1]


def test_a_difference_is_told(tmp_path: Path) -> None:
    (tmp_path / "out" / "s").mkdir(parents=True)
    for epoch, values in enumerate(([1, 2], [3])):
        pq.write_table(pa.table({"x": values}), tmp_path / "out" / "s" / f"epoch-{epoch}.parquet")
    assert differences(tmp_path, {"s": [Counter([(1,), (2,)]), Counter([(3,)])]}) == []
    found = differences(tmp_path, {"s": [Counter([(1,)]), Counter([(3,), (4,)]), Counter()]})
    assert [line.split(":")[0] for line in found] == ["s", "s, epoch 0", "s, epoch 1"]


def test_a_difference_of_lines_is_told(tmp_path: Path) -> None:
    (tmp_path / "out" / "s").mkdir(parents=True)
    for epoch, text in enumerate(('{"x":1,"y":2}\n{"y":[0.5],"x":3}\n', "", '{"x":1}\n{"x":1}\n')):
        (tmp_path / "out" / "s" / f"epoch-{epoch}.jsonl").write_text(text)
    right: lines.Lines = [[{"x": 3, "y": [0.5]}, {"x": 1, "y": 2}], [], [{"x": 1}, {"x": 1}]]
    assert lines.differences(tmp_path, {"s": right}) == []
    wrong: lines.Lines = [[{"x": 3, "y": [0.5]}, {"x": 1, "y": 3}], [{"x": 0}], [{"x": 1}], []]
    found = lines.differences(tmp_path, {"s": wrong})
    assert [line.split(":")[0] for line in found] == ["s", "s, epoch 0", "s, epoch 1", "s, epoch 2"]
