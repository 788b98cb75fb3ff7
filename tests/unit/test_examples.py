"""The generators of the single-file examples; those with a folder of their own are tested in tests/examples."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from understudy.model.hashing import digest
from understudy.runtime.application import load
from understudy.sources import Generator

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["wordcount", "sentiment"])
def test_examples_generate_the_same_rows_again(name: str) -> None:
    app = load(ROOT / "examples" / f"{name}.py")
    source = app.sources[0].source
    assert isinstance(source, Generator)
    digests = [[digest(source.open(0, 1, app.epoch_s).read(epoch, None, None)) for epoch in range(3)] for _ in range(2)]
    assert digests[0] == digests[1]
    assert len(set(digests[0])) == 3


def test_words_follow_zipf() -> None:
    app = load(ROOT / "examples" / "wordcount.py", {"rate": "1000"})
    table = app.sources[0].source.open(0, 1, 1.0).read(7, None, None)
    counts = Counter(word for text in table["text"].to_pylist() for word in text.split())
    assert counts.most_common(1)[0][0] == "the"
    assert counts["the"] > 1.5 * counts["and"] > 2 * counts["of"]
    times = table["at"].cast("int64").to_numpy()
    assert times.min() == 7_000_000
    assert times.max() < 8_000_000
