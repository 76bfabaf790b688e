"""The index of the keys of a keyed learner, beside a dict."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from credo.streams.keyed.naming import KeyName
from credo.streams.keyed.table import KeyTable

NAMES = st.one_of(st.integers(-3, 40), st.sampled_from([2**70, "1", "a", b"a", b"1"]), st.text(max_size=2))


@given(st.lists(st.tuples(st.booleans(), st.lists(NAMES, max_size=12, unique_by=lambda k: (type(k), k)))))
def test_the_index_of_keys_is_a_dict(moves: list[tuple[bool, list[Any]]]) -> None:
    table, expected = KeyTable(400), dict[Any, int]()
    for adding, names in moves:
        known = [name for name in names if name in expected]
        np.testing.assert_array_equal(table.find(names), [expected.get(name, -1) for name in names])
        if adding and len(expected) < 380:
            new = [name for name in names if name not in expected]
            expected |= zip(new, table.add(new).tolist(), strict=True)
        else:
            table.remove(table.find(known))
            for name in known:
                del expected[name]
        assert len(table) == len(expected) == len(set(expected.values()))
        assert table.names(np.array(list(expected.values()), int)) == list(expected)
    again = KeyTable(400)
    again.restore(np.array(list(expected.values()), int), list(expected))
    np.testing.assert_array_equal(again.find(list(expected)), list(expected.values()))
    assert len(again) == len(expected)


def test_names_whose_hashes_are_the_same_are_different_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("credo.streams.keyed.table.hash", lambda name: 7, raising=False)
    table = KeyTable(8)
    names: list[KeyName] = ["a", b"a", "b", "c"]
    assert table.add(names).tolist() == [0, 1, 2, 3]
    table.remove(np.array([1]))
    assert table.find([*names, 7, "d"]).tolist() == [0, -1, 2, 3, -1, -1]
