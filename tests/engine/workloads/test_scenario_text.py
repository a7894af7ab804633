import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.errors import ScenarioError
from engine.workloads.scenario_text import scenario_text

PLAIN = (
    st.booleans()
    | st.integers(-(2**62), 2**62)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
)
VALUES = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), VALUES, max_size=5))
def test_what_is_written_reads_back_equal(document):
    assert tomllib.loads(scenario_text(document)) == document


def test_a_scenario_is_written_as_people_write_it():
    document = {
        "name": "job",
        "batch": {"micro": 2, "sequence_length": {"distribution": "lognormal", "mean": 2048.0}},
        "memory": {"allocator": "caching", "long_lived": {"per_step": 2.4}},
        "optimizations": {"fusion.attention": {}},
    }
    assert scenario_text(document) == (
        'name = "job"\n\n[batch]\nmicro = 2\nsequence_length = { distribution = "lognormal", mean = 2048.0 }\n\n'
        '[memory]\nallocator = "caching"\n\n[memory.long_lived]\nper_step = 2.4\n\n'
        '[optimizations]\n"fusion.attention" = {}\n'
    )


def test_what_toml_has_no_word_for_is_refused():
    with pytest.raises(ScenarioError, match="cannot hold None"):
        scenario_text({"name": None})
