import re

from hypothesis import given
from hypothesis import strategies as st

from engine.analyses.idle.host_calls import _NEEDLES, _PATTERNS
from engine.analyses.name_search import names_holding
from engine.trace import StringTable


@given(st.lists(st.text(alphabet="abAB µ", max_size=6), unique=True, max_size=12), st.sampled_from(["a", "ab", "bb"]))
def test_every_string_that_holds_a_needle_is_found(texts, needle):
    found = names_holding(StringTable.from_strings(texts), [needle]).tolist()
    assert {index for index, text in enumerate(texts) if needle in text.lower()} <= set(found)
    assert found == sorted(set(found))


def test_a_needle_that_spans_two_strings_names_the_first():
    assert names_holding(StringTable.from_strings(["x", "na", "me", "name"]), ["name"]).tolist() == [1, 3]


@given(
    st.sampled_from(sorted(_PATTERNS)).flatmap(
        lambda call: st.from_regex(re.compile(_PATTERNS[call], re.ASCII), fullmatch=True)
    )
)
def test_every_name_of_a_host_call_holds_a_needle(name):
    assert any(needle in name.lower() for needle in _NEEDLES)
