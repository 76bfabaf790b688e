"""How many operations of a decision's program are ready at once: for more than eight XLA wakes a thread."""

from __future__ import annotations

import re
from typing import Any

import jax
import numpy as np
import pytest

from credo import bandits

FREE = {"parameter", "constant", "get-tuple-element", "bitcast", "tuple"}
"""What a program does not do when it runs."""

COMPUTATION = re.compile(r"^(ENTRY )?%([\w.\-]+) \([^\n]*\{\n(.*?)\n\}", re.MULTILINE | re.DOTALL)
OPERATION = re.compile(r"\s*(?:ROOT )?%([\w.\-]+) = (?:\(.*?\)|\S+) ([a-z][\w\-]*)\((.*?)\)(?:,|$)")
INSIDE = re.compile(r"(?:body|to_apply)=%([\w.\-]+)|branch_computations=\{(.*?)\}")


def most_ready(text: str) -> dict[str, int]:
    """For each computation that a compiled program runs one by one: how many of its operations are ready at
    once at most, if they run in the order in which they became ready.
    """
    parts = {name: body for _, name, body in COMPUTATION.findall(text)}
    waiting = [name for entry, name, _ in COMPUTATION.findall(text) if entry]
    found: dict[str, int] = {}
    while waiting:
        name = waiting.pop()
        kinds: dict[str, str] = {}
        needs: dict[str, list[str]] = {}
        for line in parts[name].splitlines():
            line = re.sub(r"/\*.*?\*/", "", line)
            match = OPERATION.match(line)
            assert match is not None, line
            kinds[match[1]], needs[match[1]] = match[2], re.findall(r"%([\w.\-]+)", match[3])
            if match[2] in ("conditional", "while", "call"):
                for one, several in INSIDE.findall(line):
                    waiting += [one] if one else re.findall(r"[\w.\-]+", several)
        found[name] = _most(kinds, needs)
    return found


def _most(kinds: dict[str, str], needs: dict[str, list[str]]) -> int:
    before: dict[str, set[str]] = {}
    for name, inputs in needs.items():  # inputs stand before what needs them
        own: set[str] = set()
        for one in inputs:
            own |= before.get(one, set()) if kinds.get(one, "parameter") in FREE else {one}
        before[name] = own
    work = [name for name, kind in kinds.items() if kind not in FREE]
    queue = [name for name in work if not before[name]]
    seen, done, most = set(queue), set[str](), len(queue)
    while queue:
        done.add(queue.pop(0))
        new = [name for name in work if name not in seen and before[name] <= done]
        queue += new
        seen |= set(new)
        most = max(most, len(queue))
    assert seen == set(work)
    return most


def test_operations_that_wait_for_none_are_ready_at_once() -> None:
    text = """HloModule m

%inner (a: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  ROOT %n = f32[] negate(%a)
}

ENTRY %main (p: f32[2], q: f32[2]) -> (f32[2], f32[]) {
  %p = f32[2]{0} parameter(0)
  %q = f32[2]{0} parameter(1)
  %one = f32[2]{0} add(%p, %q)
  %two = f32[2]{0} multiply(%p, %q), metadata={op_name="x"}
  %pair = (f32[2]{0}, f32[2]{0}) tuple(%one, %two)
  %left = f32[2]{0} get-tuple-element(%pair), index=0
  %three = f32[] dot(%left, /*index=1*/%p)
  %four = f32[] call(%three), to_apply=%inner
  ROOT %out = (f32[2]{0}, f32[]) tuple(%two, %four)
}
"""
    assert most_ready(text) == {"main": 2, "inner": 1}


@pytest.mark.optimised
@pytest.mark.parametrize("arms", [2, 10])
def test_a_decision_of_the_default_wakes_no_other_thread(arms: int) -> None:
    one = bandits.Bandit(bandits.default_agent(arms, 10), window=10)
    one.decide(np.zeros(10))
    programs: Any = one._engine.programs
    (asked,) = programs._ask.values()
    row = jax.ShapeDtypeStruct((asked.write.own.words.size,), np.uint32)
    ready = most_ready(asked.program.lower(*programs._form.blank, row).compile().as_text())
    assert len(ready) > 5 and max(ready.values()) <= 8
