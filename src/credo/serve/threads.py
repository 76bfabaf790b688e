"""Threads of a service, none of which may end unnoticed."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable

__all__ = ["Worker"]


def _nobody(name: str, error: BaseException) -> None:
    """Tell nobody, before a service has said whom to tell."""


class Worker(threading.Thread):
    """A thread that works until it is told to end.

    If it ends in another way, requests would wait for ever for what it does. So `failed` is called, with its
    name and what ended it, and the service stops: what was acknowledged is in the journal, and comes back at
    the next start.

    Arguments:
        name: the name of the thread.

    Attributes:
        failed: what is called, in this thread, if it ends before it was told to.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.failed: Callable[[str, BaseException], None] = _nobody

    @abstractmethod
    def work(self) -> None:
        """Work until the end."""

    def run(self) -> None:
        """Work, and say if that failed."""
        try:
            self.work()
        except BaseException as error:
            self.failed(self.name, error)
