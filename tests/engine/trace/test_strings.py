import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.trace import StringInterner, StringTable


@given(st.lists(st.text(st.characters()), max_size=30))
def test_interning_keeps_every_text_even_lone_surrogates(texts):
    interner = StringInterner()
    ids = interner.intern_all(texts)
    table = interner.table()
    assert [table[index] for index in ids.tolist()] == texts
    assert list(table) == list(dict.fromkeys(texts))
    assert table.texts(ids) == texts
    assert all(table.id_of(text) == index for text, index in zip(texts, ids.tolist(), strict=True))


def test_an_absent_string_is_empty_text():
    table = StringTable.from_strings(["a"])
    assert table.text(-1) == ""
    assert table.texts(np.array([0, -1], dtype=np.int32)) == ["a", ""]
    assert table.id_of("b") == -1


def test_search_ignores_case_unless_asked():
    table = StringTable.from_strings(["MatMulV3", "aten::matmul", "Cast"])
    assert table.find("matmul").tolist() == [0, 1]
    assert table.find("matmul", match_case=True).tolist() == [1]


def test_many_strings_are_decoded_like_few():
    texts = [f"näme {index}" for index in range(3000)]
    indices = np.array([2999, -1, 7, 2999, *range(3000)], dtype=np.int32)
    expected = [texts[index] if index >= 0 else "" for index in indices.tolist()]
    assert StringTable.from_strings(texts).texts(indices) == expected
