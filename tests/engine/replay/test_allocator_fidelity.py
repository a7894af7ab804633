import pytest

from engine.core.progress import no_progress
from engine.replay.fidelity import ALLOCATOR_TABLES


@pytest.mark.parametrize("table", ALLOCATOR_TABLES, ids=lambda table: table.id)
def test_allocators_keep_to_what_real_ones_did(validation, table):
    if not all((validation / name).exists() for name in table.files):
        pytest.skip("no captures beside the published measurements")
    result = table.evaluate(validation, no_progress)
    assert result.table == table.id
    assert result.holds
    assert result.parts
