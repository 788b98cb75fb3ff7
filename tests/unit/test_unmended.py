"""The list of mends follows the code; `python -m tests.unmended` plays their scenarios without them."""

from __future__ import annotations

import pytest
from tests.unmended import MENDS, SCENARIOS, Mend, sources


@pytest.mark.parametrize("mend", MENDS, ids=lambda mend: f"{mend.scenario}: {mend.what}")
def test_a_mend_is_where_the_list_says_and_can_be_taken_out(mend: Mend) -> None:
    assert (SCENARIOS / f"{mend.scenario}.txt").exists()
    for module, source in sources(mend).items():
        compile(source, module, "exec")
