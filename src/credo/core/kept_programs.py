"""Compiled programs that are kept between processes, and found again without being traced.

JAX keeps the results of compilation, but to find them it traces and lowers a function again, which takes
seconds for a bank of learners. Here a program is known by what it is made from: its function, the structures,
shapes and dtypes of its arguments, the source of credo, the versions and options of what compiles it, and the
processor (`credo.core.fingerprints`). A file holds its digest and is ignored if it is damaged; if anything
differs it is never looked at. Programs that depend on a function of a user are compiled in every process.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import inspect
import os
import pickle
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Generic, TypeVar

import jax
import numpy as np
from jax.core import Tracer
from jax.experimental import serialize_executable
from jaxlib import (
    lapack,
    utils,  # pyright: ignore[reportAttributeAccessIssue]
)

from credo.core.errors import DataError
from credo.core.files import write_atomically
from credo.core.fingerprints import Nameless, fingerprint, known_by_name, option
from credo.core.program_folder import SUFFIX, folder, keep_small
from credo.core.types import PyTree

__all__ = ["Kept", "always_hasty", "compile_in_haste", "program", "without_collector"]

T = TypeVar("T")

_MARK = b"credo program 1\n"
_HASTE: tuple[Any, ...] = (
    {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False},
    {"xla_backend_optimization_level": 0},  # JAX 0.12 has no other emitters
)
"""Options of XLA for a program that runs a few times: it would take longer to make it fast than to run it."""
_SHORTEST = "jax_persistent_cache_min_compile_time_secs"


class _Given(threading.local):
    """The number of programs that JAX's own cache gave to this thread."""

    count = 0


class _Shared(Generic[T]):
    """A setting of the whole process that is another one while threads work.

    Arguments:
        change: changes it, and gives what it was.
        restore: makes it that again.
    """

    def __init__(self, change: Callable[[], T], restore: Callable[[T], None]) -> None:
        self._change = change
        self._restore = restore
        self._usual: list[T] = []
        # the setting is one for all threads: the first that works changes it, and the last puts it back
        self._lock = threading.Lock()
        self._count = 0

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        """Work under the other setting."""
        with self._lock:
            if not self._count:
                self._usual = [self._change()]
            self._count += 1
        try:
            yield
        finally:
            with self._lock:
                self._count -= 1
                if not self._count:
                    self._restore(self._usual.pop())


def _keep_nothing() -> float:
    usual: float = jax.config.values[_SHORTEST]
    jax.config.update(_SHORTEST, 1e9)
    return usual


def _stop_collecting() -> bool:
    usual = gc.isenabled()
    gc.disable()
    return usual


def _collect_again(usual: bool) -> None:
    if usual:
        gc.enable()


_out_of_the_other_cache = _Shared(_keep_nothing, lambda usual: jax.config.update(_SHORTEST, usual))
"""Compile without a second copy in JAX's own cache."""

without_collector = _Shared(_stop_collecting, _collect_again)
"""Work without collections of garbage, as a trace of a large program, whose objects are all in use.

The collector looks through all of them again and again, which is a fifth of the time of a trace. What is not
part of a circle is freed as always.
"""

_given = _Given()
_lowered: dict[Path, tuple[jax.stages.Lowered, Any]] = {}
"""Programs that were compiled in haste, under the files of the usual ones, which need no second trace."""

MOST_LOWERED = 4
"""The most of them: each takes megabytes, and one that was forgotten is traced again."""


def program(
    name: str,
    parts: tuple[object, ...],
    build: Callable[[], tuple[Callable[..., PyTree], T]],
    arguments: tuple[PyTree, ...],
    donate: tuple[int, ...] = (),
    *,
    hasty: bool = False,
) -> tuple[Callable[..., Any], T]:
    """A compiled function and what is to be known of it, from a file where there is one.

    Arguments:
        name: what the program does, one word, for its file.
        parts: everything that the program depends on beside its arguments.
        build: makes the function and what is to be known of it, which needs a trace, and can be pickled.
        arguments: arguments like those that will come, or their shapes.
        donate: the arguments whose arrays the program may use up.
        hasty: whether it is compiled in less than half of the time, to run a few times as slowly. Its last
            bits differ, so that what calls it must depend on the data alone.
    """
    place = _place(name, parts, arguments)
    hasty = hasty and not always_hasty()
    if place is not None and hasty:
        return _obtain(place.with_stem(f"{place.stem}-hasty"), build, arguments, donate, True, place)
    if place is not None:
        return _obtain(place, build, arguments, donate)
    with without_collector():
        function, extra = build()
    if hasty:
        return compile_in_haste(jax.jit(function, donate_argnums=donate).lower(*arguments)), extra
    return jax.jit(function, donate_argnums=donate), extra


def always_hasty() -> bool:
    """Whether all programs are compiled in haste, as by the tests: a second one would be the same."""
    return "xla_backend_optimization_level=0" in os.environ.get("XLA_FLAGS", "")


def _obtain(
    place: Path,
    build: Callable[[], tuple[Callable[..., PyTree], T]],
    arguments: tuple[PyTree, ...],
    donate: tuple[int, ...],
    hasty: bool = False,
    usual: Path | None = None,
) -> tuple[Callable[..., Any], T]:
    """`program` for the file that it belongs into, compiled in haste where that is asked for; `usual` is the
    file of the same program that is not.
    """
    found = _read(place)
    if found is not None:
        return found
    _listen()
    given = _given.count
    with _out_of_the_other_cache(), without_collector():
        # in one call, since another thread may want the same program
        known: tuple[jax.stages.Lowered, T] | None = _lowered.pop(place, None)
        lowered, extra = _lower(place, build, arguments, donate) if known is None else known
        if usual is not None:
            _lowered[usual] = (lowered, extra)
            _forget_first()
        compiled = compile_in_haste(lowered) if hasty else lowered.compile()
    if _given.count == given:  # what JAX's cache gave cannot be written again
        _keep(place, compiled, extra)
    return compiled, extra


def _forget_first() -> None:
    """Keep the latest programs that the usual compilation may still want: most streams end before it."""
    for place in list(_lowered)[:-MOST_LOWERED]:
        _lowered.pop(place, None)


def _lower(
    place: Path,
    build: Callable[[], tuple[Callable[..., PyTree], T]],
    arguments: tuple[PyTree, ...],
    donate: tuple[int, ...],
) -> tuple[jax.stages.Lowered, T]:
    """A program as XLA takes it, and what is to be known of it."""
    function, extra = build()
    return jax.jit(_named(function, place.stem), donate_argnums=donate).lower(*arguments), extra


def compile_in_haste(lowered: jax.stages.Lowered) -> jax.stages.Compiled:
    """Compile a program that runs a few times; as any other if XLA no longer has the options for it."""
    for options in _HASTE:
        with contextlib.suppress(jax.errors.JaxRuntimeError):
            return lowered.compile(compiler_options=options)
    return lowered.compile()


def _place(name: str, parts: tuple[object, ...], arguments: tuple[PyTree, ...]) -> Path | None:
    """The file of a program, None if it cannot be kept."""
    found = folder()
    if found is None or jax.device_count() > 1 or option("jax_default_device") is not None:
        return None
    leaves, structure = jax.tree.flatten(arguments)
    kinds = [(np.shape(leaf), leaf.dtype, getattr(leaf, "weak_type", False)) for leaf in leaves]
    try:
        return found / f"{name}-{fingerprint(name, parts, structure, kinds)}{SUFFIX}"
    except Nameless:
        return None


def _named(function: Callable[..., T], name: str) -> Callable[..., T]:
    """The function under a name of its own, by which no other cache knows its program yet."""

    @functools.wraps(function)
    def own(*arguments: Any) -> T:
        return function(*arguments)

    own.__name__ = own.__qualname__ = name[: name.rfind("-") + 13].replace("-", "_")
    return own


@functools.cache
def _listen() -> None:
    """Count the programs that JAX's own cache gives."""

    def hear(event: str, **_: Any) -> None:
        _given.count += event == "/jax/compilation_cache/cache_hits"

    jax.monitoring.register_event_listener(hear)


def _keep(place: Path, compiled: jax.stages.Compiled, extra: object) -> None:
    """Write a program, if that can be done."""
    try:
        data = zlib.compress(pickle.dumps((*serialize_executable.serialize(compiled), extra)), 1)
    except (ValueError, TypeError, NotImplementedError, pickle.PicklingError, jax.errors.JaxRuntimeError):
        return  # such a program has no form that could be written
    with contextlib.suppress(DataError, OSError):
        write_atomically(place, _MARK + hashlib.sha256(data).digest() + data)
        keep_small(place.parent)


def _read(place: Path) -> tuple[Callable[..., Any], Any] | None:
    """The program in a file; None if there is none, or it is damaged."""
    try:
        content = place.read_bytes()
        os.utime(place)
    except OSError:
        return None
    start = len(_MARK) + 32
    if content[:start] != _MARK + hashlib.sha256(content[start:]).digest():
        return None
    try:
        payload, inputs, outputs, extra = pickle.loads(zlib.decompress(content[start:]))
        _find_lapack()
        with _silently():
            return serialize_executable.deserialize_and_load(payload, inputs, outputs), extra
    except Exception:  # whatever a changed environment does to a file, the program can be compiled anew
        return None


@functools.cache
def _find_lapack() -> None:
    """Make jaxlib find LAPACK, as it otherwise does when a call of it is lowered."""
    prepare: Any = lapack.prepare_lapack_call
    prepare("potrf_ffi", np.dtype(np.float32))


@contextlib.contextmanager
def _silently() -> Iterator[None]:
    """Load without XLA's lines on standard error, which compare two spellings of one processor."""
    utils.absl_set_min_log_level(3)
    try:
        yield
    finally:
        utils.absl_set_min_log_level(int(os.environ.get("TF_CPP_MIN_LOG_LEVEL") or 0))


class Kept:
    """A function that is compiled once for each structure of its arguments, in whatever process.

    Its programs are those of `jax.jit`, which takes its place where nothing is kept, while another function
    is traced, and where an argument is no array or would be converted.

    Arguments:
        function: the function; what it computes depends on its arguments alone.
        static: the names of the arguments that are part of the program.
        donate: the names of the arguments whose arrays the program may use up.
        once: whether a process runs it once, so that it need not be fast but quickly compiled.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        static: tuple[str, ...] = (),
        donate: tuple[str, ...] = (),
        once: bool = False,
    ) -> None:
        functools.update_wrapper(self, function)
        self._once = once
        self._function = function
        self._compiled: Any = jax.jit(function, static_argnames=static, donate_argnames=donate)
        names = list(inspect.signature(function).parameters)
        self._static = tuple(names.index(name) for name in static)
        self._dynamic = tuple(place for place in range(len(names)) if place not in self._static)
        self._donate = tuple(self._dynamic.index(names.index(name)) for name in donate)
        self._programs: dict[object, Callable[..., Any] | None] = {}

    def __call__(self, *arguments: Any) -> Any:
        """The value of the function."""
        if folder() is None or len(arguments) < len(self._static) + len(self._dynamic):
            return self._compiled(*arguments)
        dynamic = [arguments[place] for place in self._dynamic]
        leaves, structure = jax.tree_util.tree_flatten(dynamic)
        kinds = tuple(map(_kind, leaves))
        if None in kinds:
            return self._compiled(*arguments)
        static = tuple(arguments[place] for place in self._static)
        known = (static, structure, kinds, option("jax_enable_x64"))
        found = self._programs.get(known)
        if found is None and known not in self._programs:
            found = self._programs[known] = self._find(static, dynamic)
        if found is None:
            return self._compiled(*arguments)
        return found(*dynamic)

    def cache_size(self) -> int:
        """The number of programs of this function in this process."""
        own = sum(found is not None for found in self._programs.values())
        return own + int(self._compiled._cache_size())

    def clear_cache(self) -> None:
        """Forget the programs of this process, as the method of `jax.jit` does; files stay."""
        self._programs.clear()
        self._compiled.clear_cache()

    def _find(self, static: tuple[Any, ...], dynamic: list[Any]) -> Callable[..., Any] | None:
        """The program for arguments like these; None if it cannot be kept."""
        name = self._function.__name__.strip("_")
        parts = (self._function.__module__, self._function.__qualname__, static)
        place = _place(name, parts, tuple(dynamic)) if known_by_name(*parts[:2]) else None
        if place is None:
            return None

        def bound(*dynamic: Any) -> Any:
            places = (*self._static, *self._dynamic)
            every = dict(zip(places, (*static, *dynamic), strict=True))
            return self._function(*(every[place] for place in range(len(places))))

        return _obtain(place, lambda: (bound, None), tuple(dynamic), self._donate, self._once)[0]


_NUMPY = (np.ndarray, np.generic)


def _kind(leaf: Any) -> object:
    """The properties of an array that a program depends on; None for no array, or one to be converted."""
    if isinstance(leaf, Tracer):
        return None
    if isinstance(leaf, jax.Array):
        return leaf.shape, leaf.dtype, getattr(leaf, "weak_type", False)
    if isinstance(leaf, _NUMPY):
        kind = leaf.dtype
        same = kind.char in "fiI?" or jax.dtypes.canonicalize_dtype(kind) == kind
        if same:
            return (leaf.shape, kind)
        return None
    return None
