"""How much a compiled program does, in counts that no load of the machine disturbs.

    counts(as_users_get(jax.jit(learner.update).lower(belief, x, y)), belief.size)

They are read off the text of the program that XLA has optimised, and differ from one version of XLA to
another. What runs is an instruction of the entry, or of a loop, branch or call that it reaches; what stands
inside a fusion or a reduction is a part of it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

import jax
from tests.haste import KNOWN

__all__ = ["Counts", "as_users_get", "counts"]

_FREE = {
    "after-all",
    "bitcast",
    "constant",
    "get-tuple-element",
    "opt-barrier",
    "parameter",
    "partition-id",
    "replica-id",
    "tuple",
}
"""Operations that run nothing."""

_CONTROL = {"call", "conditional", "while"}
"""Operations that run other computations, which are counted in their place."""

_HEAD = re.compile(r"^(ENTRY )?%?([\w.-]+) \(.*\{$")
_LINE = re.compile(r"^\s+(?:ROOT )?%?([\w.-]+) = (\(.*?\)|\S+) ([\w-]+)\((.*)$")
_CALLED = re.compile(
    r"(?:body|condition|to_apply|calls|true_computation|false_computation|branch_computations)="
    r"(\{[^}]*\}|%?[\w.-]+)"
)
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
_TARGET = re.compile(r'custom_call_target="([^"]*)"')


@dataclass(frozen=True)
class Counts:
    """What one call of a program does.

    Attributes:
        kernels: how many instructions are started: fusions, products, copies, calls of libraries. Those of a
            loop count as often as it turns, or once where XLA does not know how often; both sides of a branch
            count.
        lapack: how many of these are calls of LAPACK.
        passes: how many places of the program read arrays of the given size, or of several times that size;
            one in a loop over the slices of such an array is one.
    """

    kernels: int
    lapack: int
    passes: int


@dataclass(frozen=True)
class _Instruction:
    name: str
    shape: str
    operation: str
    rest: str

    @property
    def operands(self) -> list[str]:
        """The names of the operands."""
        return re.findall(r"%([\w.-]+)", self.rest[: self.rest.find(")")])

    @property
    def called(self) -> list[str]:
        """The computations that it names."""
        return [name for group in _CALLED.findall(self.rest) for name in re.findall(r"[\w.-]+", group)]

    def found(self, pattern: re.Pattern[str], otherwise: str) -> str:
        """What a pattern finds behind the operands."""
        match = pattern.search(self.rest)
        return match.group(1) if match else otherwise


def as_users_get(lowered: jax.stages.Lowered) -> jax.stages.Compiled:
    """The compiled program with the kernels that users get, where the tests compile in haste, too."""
    return lowered.compile({"xla_cpu_use_fusion_emitters": True} if KNOWN else None)


def counts(compiled: jax.stages.Compiled, size: int | None = None) -> Counts:
    """The counts of a compiled program.

    `size` is the size of an array that is read in a pass, such as the number P of parameters; by default, the
    longest axis that an array has which the program is given.
    """
    text = compiled.as_text()
    assert text is not None
    computations, entry = _parse(text)
    if size is None:
        given = [line.shape for line in computations[entry] if line.operation == "parameter"]
        size = max((axis for shape in given for axis in _axes(shape)), default=1)
    kernels = lapack = passes = 0
    for line, times, sizes in _run(computations, entry, 1):
        read = [sizes.get(name, 0) for name in line.operands]
        kernels += times
        lapack += times * ("lapack" in line.found(_TARGET, ""))
        passes += any(count >= size and count % size == 0 for count in read)
    return Counts(kernels, lapack, passes)


def _parse(text: str) -> tuple[dict[str, list[_Instruction]], str]:
    """The instructions of each computation, and the name of the entry."""
    computations: dict[str, list[_Instruction]] = {}
    entry, here = "", list[_Instruction]()
    for line in text.splitlines():
        if head := _HEAD.match(line):
            here = computations.setdefault(head.group(2), [])
            entry = head.group(2) if head.group(1) else entry
        elif found := _LINE.match(line):
            here.append(_Instruction(*found.groups()))
    return computations, entry


def _run(
    computations: dict[str, list[_Instruction]], name: str, times: int, known: bool = True
) -> Iterator[tuple[_Instruction, int, dict[str, int]]]:
    """The instructions that a computation runs, how often, and the sizes of the arrays beside them.

    `known` says that no loop of unknown length is around it, in which the length of another means nothing.
    """
    lines = computations[name]
    sizes = {line.name: 0 if line.shape.startswith("(") else math.prod(_axes(line.shape)) for line in lines}
    for line in lines:
        if line.operation in _CONTROL:
            loop, turns = line.operation == "while", line.found(_TRIPS, "")
            counted = known and (bool(turns) or not loop)
            for inner in line.called:
                yield from _run(computations, inner, times * int(turns or 1) if counted else 1, counted)
        elif line.operation not in _FREE:
            yield line, times, sizes


def _axes(shape: str) -> list[int]:
    """The axes of all arrays in a shape, such as f32[10,1510]{1,0} or a tuple of shapes."""
    return [int(axis) for axes in re.findall(r"\[([\d,]*)\]", shape) for axis in axes.split(",") if axis]
