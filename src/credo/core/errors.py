"""Errors, each of which is one sentence that names the field, the value and what is allowed.

All errors derive from `CredoError`, which is a `ValueError`, so that a caller can catch one type. The command
line prints the sentence and exits with status 2.
"""

from __future__ import annotations

import difflib
import json
import numbers
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

from credo.core.text import visible

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "CredoError",
    "DataError",
    "FormatError",
    "Named",
    "Sentence",
    "asking",
    "marked",
    "require_choice",
    "require_integer",
    "require_interval",
    "require_nonnegative",
    "require_positive",
    "suggest",
]


MARK = "\ufdd0"
"""Stands around a setting in the text of a `Sentence`; Unicode keeps it for the inside of programs."""


class Named(NamedTuple):
    """A setting that a sentence names, with its value if it has one; each door spells it in its own way."""

    name: str
    value: object = None

    def __str__(self) -> str:
        if self.value is None:
            return f"`{self.name}`"
        return f"`{self.name}={self.value!r}`"

    def __format__(self, spec: str) -> str:
        return f"{MARK}{json.dumps(self, default=str)}{MARK}"


class Sentence(str):
    """A sentence that names settings, which as a text is in the words of the library.

    >>> sentence = Sentence(f"60 rows; {Named('limit', 0)} for all")
    >>> sentence, sentence.spelled(lambda setting: f"{setting.name} = {setting.value}")
    ('60 rows; `limit=0` for all', '60 rows; limit = 0 for all')
    """

    parts: tuple[str | Named, ...]

    def __new__(cls, text: str) -> Self:
        parts: list[str | Named] = [*marked(text).split(MARK)]
        try:
            parts[1::2] = [Named(*json.loads(str(part))) for part in parts[1::2]]
        except (TypeError, ValueError):  # a text of somebody else has the mark
            parts = [text]
        sentence = super().__new__(cls, "".join(map(str, parts)))
        sentence.parts = tuple(parts)
        return sentence

    def spelled(self, spell: Callable[[Named], str]) -> str:
        """The sentence in the words of a door."""
        return "".join(spell(part) if isinstance(part, Named) else part for part in self.parts)


def marked(text: str) -> str:
    """A text to be put into a sentence, in which it goes on to name its settings."""
    if isinstance(text, Sentence):
        return "".join(f"{part}" for part in text.parts)
    return text


class CredoError(ValueError):
    """A request that credo cannot carry out. The message is one sentence that can be shown to a person.

    Arguments:
        message: the sentence, of which lines become one, and whose control characters are spelled. A setting
            in it is a `Named`, so that each door can spell it as its readers know it.
        field: the setting or argument whose name begins the sentence, if there is one.

    Attributes:
        value: what was given, where `must_be` made the error.
        allowed: what is allowed, in words.
        hint: what may have been meant.

    Example:
        >>> import credo
        >>> credo.Normal(-1.0)
        Traceback (most recent call last):
        ...
        credo.core.errors.CredoError: var must be finite and above 0; got -1.0.
    """

    value: object = None
    allowed: str = ""
    hint: str = ""

    def __init__(self, message: str = "", *, field: str | None = None) -> None:
        self.sentence = Sentence(message)
        super().__init__(_one_line(self.sentence))
        self.field = field

    @classmethod
    def must_be(cls, field: str, allowed: str, value: object, hint: str = "") -> Self:
        """An error that says of a field what is allowed, what it got, and what may have been meant."""
        tail = f" ({hint})" if hint else ""
        error = cls(f"{marked(field)} must be {allowed}; got {shown(value)}{tail}.", field=field)
        error.value = value
        error.allowed = allowed
        error.hint = hint
        return error

    def spelled(self, spell: Callable[[Named], str]) -> str:
        """The sentence in the words of a door."""
        return _one_line(self.sentence.spelled(spell))


def _one_line(text: str) -> str:
    return visible(" ".join(line.strip(" ") for line in text.split("\n")))


class DataError(CredoError):
    """Data that cannot be found, read or understood.

    Example:
        >>> import credo
        >>> credo.load("nowhere.credo")
        Traceback (most recent call last):
        ...
        credo.core.errors.DataError: no saved learner at nowhere.credo.
    """


class FormatError(CredoError):
    """A saved file of another format, version or structure.

    Example:
        >>> issubclass(FormatError, CredoError)
        True
    """


def suggest(value: str, allowed: Iterable[str]) -> str:
    """A hint such as "did you mean 'mnist'?", or an empty string where nothing allowed is close."""
    close = difflib.get_close_matches(str(value), list(allowed), n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return ""


def asking(statement: str, hint: str) -> str:
    """The sentence of a statement, and of the question what was meant, if there is one."""
    if hint:
        return f"{statement}: {hint}"
    return f"{statement}."


Name = TypeVar("Name", bound=str)


def require_choice(field: str, value: object, allowed: Iterable[Name]) -> Name:
    """The name that was chosen; one that is not allowed is refused, and the closest suggested."""
    names = list(allowed)
    for name in names:
        if name == value:
            return name
    hint = suggest(value, names) if isinstance(value, str) else ""
    raise CredoError.must_be(field, f"one of {', '.join(names)}", value, hint)


LARGEST_INTEGER = 2**63 - 1
"""The largest whole number that an array can hold."""


def unrepresentable(value: object) -> object | None:
    """The first number in a number, a list or an array that no array of JAX can hold: a whole number of more
    than 64 bits, a float of more, a `Decimal` or a `Fraction`. None if there is none.
    """
    import numpy as np

    jax = sys.modules.get("jax")
    if jax is not None and isinstance(value, jax.Array):
        return None
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        return None
    if array.dtype.kind in "fc":
        wide = array.dtype.itemsize > (8 if array.dtype.kind == "f" else 16)
        if wide and array.size:
            first: object = array.flat[0]
            return first
        return None
    if array.dtype != object:
        return None
    for entry in array.flat:
        if isinstance(entry, numbers.Number) and not _is_held(entry):
            return entry
    return None


def _is_held(entry: numbers.Number) -> bool:
    if isinstance(entry, int):
        return abs(entry) <= LARGEST_INTEGER
    return isinstance(entry, float | complex) or type(entry).__module__ == "numpy"


def require_representable(field: str, value: object) -> None:
    """Refuse a number, a list or an array with an entry that no array can hold. What is no number passes."""
    entry = unrepresentable(value)
    if entry is not None:
        raise CredoError(
            f"{field} must be a float or a whole number of at most 64 bits; got {shown(entry)}.", field=field
        )


def _concrete(value: object) -> np.ndarray | None:
    """The value as a NumPy array, or None if it is traced or is no array (checked at run time)."""
    import numpy as np

    if value is None:
        return None
    jax = sys.modules.get("jax")  # this module stays free of jax, so that the command line starts at once
    if jax is not None and isinstance(value, jax.core.Tracer):
        return None
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        return None
    if array.dtype != object:
        return array
    return None


def _numeric(field: str, value: object) -> np.ndarray | None:
    """The value as `_concrete` gives it, or a refusal if it is text, or a number that no array can hold."""
    array = _concrete(value)
    if value is not None and (array is None or array.dtype.kind in "fc"):
        require_representable(field, value)
    if array is not None and array.dtype.kind in "USMm":
        raise CredoError.must_be(field, "a number", value)
    return array


def require_positive(field: str, value: object) -> None:
    """Refuse a number, or an array with an entry, that is not above 0 and finite. Traced values pass."""
    import numpy as np

    array = _numeric(field, value)
    if array is not None and not bool(np.all((array > 0) & np.isfinite(array))):
        raise CredoError.must_be(field, "finite and above 0", array)


def require_nonnegative(field: str, value: object) -> None:
    """Refuse a number, or an array with an entry, that is below 0 or not finite. Traced values pass."""
    import numpy as np

    array = _numeric(field, value)
    if array is not None and not bool(np.all((array >= 0) & np.isfinite(array))):
        raise CredoError.must_be(field, "finite and at least 0", array)


def require_finite(field: str, value: object) -> None:
    """Refuse a number, or an array with an entry, that is not finite. Traced values pass."""
    import numpy as np

    array = _numeric(field, value)
    if array is not None and not bool(np.all(np.isfinite(array))):
        raise CredoError.must_be(field, "finite", array)


ROUNDING = 1e-5
"""The amount by which a covariance may be asymmetric, or below 0, relative to its largest entry: as the sums
and products of single precision leave it."""


def require_covariance(field: str, value: object, *, singular: bool) -> None:
    """Refuse what is no covariance: a number or variances below 0, or a matrix that is not positive
    (semi-)definite. A triangular matrix, such as a Cholesky factor, is none. Traced values pass.

    Arguments:
        field: the name of the argument.
        value: a number, variances (n,), or a matrix (n, n); more axes in front are several of them, but of
            two axes the value is one matrix.
        singular: whether directions may have a variance of 0.
    """
    import numpy as np

    array = _numeric(field, value)
    if array is None or array.ndim < 2:
        (require_nonnegative if singular else require_positive)(field, value)
        return
    if array.shape[-1] != array.shape[-2]:
        raise CredoError(f"{field} must be a square matrix; got shape {array.shape}.", field=field)
    if not array.size:
        return
    require_finite(field, array)
    matrix = array.astype(np.float64)
    largest = np.max(np.abs(matrix), axis=(-2, -1), keepdims=True)
    gap = np.abs(matrix - np.swapaxes(matrix, -2, -1))
    if bool(np.any(gap > ROUNDING * largest)):
        hint = ""
        if matrix.ndim == 2 and (not np.any(np.triu(matrix, 1)) or not np.any(np.tril(matrix, -1))):
            hint = " It is triangular: a root L must be given as L L'."
        raise CredoError(f"{field} must be symmetric; got {shown(array)}.{hint}", field=field)
    lift = ROUNDING * largest + np.finfo(float).tiny if singular else 0.0
    try:
        np.linalg.cholesky(matrix + lift * np.eye(matrix.shape[-1]))
    except np.linalg.LinAlgError:
        least = float(np.min(np.linalg.eigvalsh(matrix)))
        kind = "semi-definite" if singular else "definite"
        raise CredoError(
            f"{field} must be positive {kind}; its least eigenvalue is {least:.3g}.", field=field
        ) from None


def require_interval(field: str, value: object, low: float, high: float, *, closed: bool = True) -> None:
    """Refuse a number outside an interval, whose ends belong to it if `closed`. Traced values pass."""
    import numpy as np

    array = _numeric(field, value)
    if array is None:
        return
    inside = (array >= low) & (array <= high) if closed else (array > low) & (array < high)
    if not bool(np.all(inside)):
        left, right = ("[", "]") if closed else ("(", ")")
        raise CredoError.must_be(field, f"in {left}{low:g}, {high:g}{right}", array)


def require_integer(field: str, value: object, low: float, high: float | None = None) -> None:
    """Refuse a value that is not a whole number from `low` to `high`, or without limit for None."""
    import numpy as np

    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        number = int(value)
        if low <= number <= (LARGEST_INTEGER if high is None else high):
            return
        if high is None and number > low:
            high = LARGEST_INTEGER
    span = f"at least {low}" if high is None else f"in {low}..{high}"
    raise CredoError.must_be(field, f"a whole number {span}", value)


LONGEST = 60
"""The most characters of a value in a sentence."""


def shown(value: object) -> str:
    """A value as a sentence shows it: a long one is cut off, and one beyond 4,300 digits has no digits."""
    import numpy as np

    if isinstance(value, np.ndarray) and value.size != 1:
        return np.array2string(value, threshold=6, precision=4)
    try:
        text = repr(value.item() if isinstance(value, np.ndarray) else value)
    except ValueError:
        return "a number of more than 4,300 digits"
    if len(text) <= LONGEST:
        return text
    return f"{text[: LONGEST - 3]}..."
