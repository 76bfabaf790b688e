"""How a source is known again by its first lines."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from credo.sessions.places import Prefix


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_digest_of_the_first_lines_is_the_same_in_one_step_and_in_several(end: str, tmp_path: Path) -> None:
    text = end.join(f"{row},{row**2}" for row in range(12))  # the last line has no end
    plain, packed, longer = tmp_path / "t.csv", tmp_path / "t.csv.gz", tmp_path / "longer.csv"
    plain.write_bytes(text.encode())
    packed.write_bytes(gzip.compress(text.encode()))
    longer.write_bytes(f"{text}{end}more{end}".encode())
    steps = Prefix(str(plain))
    digests = [steps.upto(line) for line in (2, 5, 5, 12)]
    assert len(set(digests)) == 3 and steps.line == 12
    for path in (plain, packed, longer):
        assert [Prefix(str(path)).upto(line) for line in (2, 5, 5, 12)] == digests
    assert steps.upto(20) == digests[-1] and steps.line == 12  # there are no more
