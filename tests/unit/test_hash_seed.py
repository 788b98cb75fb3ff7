"""Every process of a run hashes alike: a set of strings has the same order in all replicas."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from understudy.runtime.processes import spawn

WORDS = "print(hash('to be'), hash(b'or not'), hash(('to', 'be')))\n"


@pytest.mark.parametrize("own", [None, "7", "random"])
def test_children_agree(own: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    if own is not None:
        monkeypatch.setenv("PYTHONHASHSEED", own)
    (tmp_path / "wordlist.py").write_text(WORDS)
    outputs = [tmp_path / f"{number}.log" for number in range(2)]
    for output in outputs:
        child = spawn(output.stem, "wordlist", [], output, {"PYTHONPATH": str(tmp_path)})
        assert child.process.wait(60) == 0
    first, second = (output.read_text() for output in outputs)
    assert first == second
    assert first == _run("0", WORDS), "whoever runs the same file with this seed sees the same"


def _run(seed: str, program: str) -> str:
    environment = os.environ | {"PYTHONHASHSEED": seed}
    return subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True, timeout=60
    ).stdout


@pytest.mark.parametrize("seed", ["random", "7", "0"])
def test_a_node_that_was_started_by_hand_starts_again_with_the_same_hashes(seed: str) -> None:
    program = f"from understudy.runtime.processes import fix_hashing\nfix_hashing()\n{WORDS}"
    assert _run(seed, program) == _run("0", WORDS)
