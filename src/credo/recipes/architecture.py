"""The network of a session, as a setting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from credo.core.errors import CredoError, Named, Sentence, require_integer
from credo.core.integers import read_integer
from credo.recipes.language import choose, numbers, split

__all__ = ["Network", "NetworkKind"]

NetworkKind: TypeAlias = Literal["linear", "mlp", "cnn", "features", "bank", "wide-bank"]
"""The kinds of networks, and the banks of several of them."""

_KINDS: tuple[NetworkKind, ...] = get_args(NetworkKind)
_FORMS = "linear, mlp:WIDTH,WIDTH,..., cnn, features:NUMBER, bank or wide-bank"
_WIDTHS = {"mlp": 50, "features": 200}


@dataclass(frozen=True)
class Network:
    """Which network maps a row to the outputs.

    Arguments:
        kind: "linear", "mlp" (a perceptron with hidden layers), "cnn" (for images), "features" (a linear
            model of random waves), or "bank" and "wide-bank" (several networks, weighed by evidence).
        widths: the widths of the hidden layers of an mlp, or the number of random features.

    Raises:
        CredoError: a width is not a whole number above 0.

    Example:
        >>> Network.parse("mlp:50,50")
        Network(kind='mlp', widths=(50, 50))
        >>> str(Network("mlp", (20,)))
        'mlp:20'
    """

    kind: NetworkKind
    widths: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for width in self.widths:
            require_integer(Sentence(f"every width of {Named('model', self.kind)}"), width, 1)

    @property
    def banked(self) -> bool:
        """Whether this is a bank of several networks."""
        return self.kind in ("bank", "wide-bank")

    @staticmethod
    def parse(text: str | Network) -> Network:
        """Read `linear`, `mlp:WIDTH,WIDTH,...` (by default one hidden layer of 50), `cnn`,
        `features:NUMBER` (200), `bank` or `wide-bank`.

        Arguments:
            text: the setting as text; a record is returned unchanged.

        Raises:
            CredoError: there is no such network, or a width is not a whole number above 0.
        """
        if isinstance(text, Network):
            return text
        name, rest = split(text)
        kind: NetworkKind = choose("model", text, name, _KINDS, _FORMS)
        if kind not in _WIDTHS:
            if rest:
                raise CredoError(f"{Named('model', kind)} takes nothing after a colon; got {text!r}.")
            return Network(kind)
        forms = f"{_FORMS}, with whole numbers for the widths"
        parts = rest.split(",") if rest else []
        whole = numbers("model", text, parts, read_integer, forms) or (_WIDTHS[kind],)
        if kind == "features" and len(whole) > 1:
            raise CredoError(f"{Named('model', kind)} takes one number; got {text!r}.", field="model")
        return Network(kind, whole)

    def __str__(self) -> str:
        if self.widths:
            return f"{self.kind}:{','.join(map(str, self.widths))}"
        return self.kind
