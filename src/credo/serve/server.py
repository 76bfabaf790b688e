"""`credo serve`: the application on uvicorn, until it is asked to stop."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from credo.core.errors import CredoError
from credo.serve.options import ServiceOptions
from credo.serve.service import Service
from credo.serve.tokens import Tokens, require_loopback

__all__ = ["serve"]


def serve(
    folder: Path,
    host: str = "127.0.0.1",
    port: int = 8000,
    tokens: Path | None = None,
    options: ServiceOptions | None = None,
    say: Callable[[str], None] = lambda sentence: None,
    names: Sequence[str] = (),
) -> int:
    """Serve the models of a folder until SIGTERM or Ctrl-C: what came is learned and saved; 0 then.

    If a thread of the service ends before, the process must end: 1 then. What was acknowledged is in the
    journal, and comes back at the next start, for which a supervisor is (`packaging/`).

    Arguments:
        folder: the folder, made if need be.
        host, port: where to listen; other than loopback addresses need tokens.
        tokens: a file of tokens, see `credo.serve.tokens`.
        options: how models are saved.
        say: called with a sentence about where it serves, and about what ended it.
        names: the names under which it is reached besides loopback addresses. Without tokens a request
            under another name is refused.

    Raises:
        CredoError: an argument is not allowed, or the address is in use.
        DataError: the folder or the tokens cannot be used.
    """
    import uvicorn

    from credo.serve.app import build_app
    from credo.serve.wire import protocol

    if tokens is None:
        require_loopback(host)
    known = Tokens() if tokens is None else Tokens.read(tokens)
    service = Service(folder, options)
    app = build_app(service, known, lambda: server.should_exit, names)
    config = uvicorn.Config(
        app,
        host,
        port,
        http=cast(Any, protocol),
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # a caller is a connection, whoever sends over it
        timeout_graceful_shutdown=30,
    )
    server = uvicorn.Server(config)

    def end() -> None:
        server.should_exit = server.force_exit = True

    service.on_failure = end
    # uvicorn raises the signal again when it has stopped, which is no failure here
    before = {number: signal.signal(number, _stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        socket = config.bind_socket()
    except SystemExit:
        raise CredoError(
            f"port {port} of {host} is in use or not allowed; give another one.", field="port"
        ) from None
    try:
        address, taken = socket.getsockname()[:2]
        say(f"credo serves {folder} at http://{address}:{taken}")
        server.run([socket])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if service.failure:
        say(f"{service.failure}; start it again: what was acknowledged is in the journal.")
        return 1
    return 0


def _stop(number: int, frame: object) -> None:
    """Do nothing: the server has stopped."""
