"""Constructors of estimators: each option of `credo learn` is a parameter of theirs, by one declaration."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from inspect import Parameter
from typing import Any, ParamSpec

__all__ = ["spelled_out"]

P = ParamSpec("P")


def spelled_out(words: type) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """A constructor whose `**options` are parameters of their own, named by a `TypedDict` and None by
    default, behind the first; all are kept as attributes. scikit-learn and River read the signature.
    """

    def decorate(init: Callable[P, None]) -> Callable[P, None]:
        instance, first, *own = inspect.signature(init).parameters.values()
        kind = Parameter.POSITIONAL_OR_KEYWORD
        options = words.__annotations__
        hints = {name: getattr(hint, "__forward_arg__", hint) for name, hint in options.items()}
        named = [Parameter(name, kind, default=None, annotation=hint) for name, hint in hints.items()]
        rest = [one for one in own if one.kind is not Parameter.VAR_KEYWORD]
        signature = inspect.Signature([instance, first, *named, *rest], return_annotation=None)

        begin: Callable[..., None] = init

        @functools.wraps(init)
        def construct(*values: Any, **given: Any) -> None:
            try:
                bound = signature.bind(*values, **given)
            except TypeError as error:
                raise TypeError(f"{type(values[0]).__name__}() {error}") from None
            bound.apply_defaults()
            estimator, *_ = bound.args
            parameters = {name: bound.arguments[name] for name in bound.arguments if name != instance.name}
            for name, value in parameters.items():
                setattr(estimator, name, value)
            begin(estimator, **parameters)

        construct.__signature__ = signature  # type: ignore[attr-defined]
        return construct

    return decorate
