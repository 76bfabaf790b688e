"""Scripts in pages of a real browser, the Chromium of Qt, as a process: `python browser.py STEPS NAMES`.

STEPS is JSON, pairs of an address to open and a script whose value is awaited there; NAMES are the names
of hosts that mean this machine. What the scripts gave is printed as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

POLL = 50
"""After how many milliseconds to look whether a script has ended."""


def values_of(steps: list[tuple[str, str]], names: list[str]) -> list[Any]:
    """The values of scripts, each in its page, one after the other."""
    rules = ", ".join(f"MAP {name} 127.0.0.1" for name in names)
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    os.environ["QTWEBENGINE_CHROMIUM_FLAGS"] = f'--no-sandbox --host-resolver-rules="{rules}"'
    from PyQt6.QtCore import QTimer, QUrl
    from PyQt6.QtWebEngineCore import QWebEnginePage
    from PyQt6.QtWidgets import QApplication

    application = QApplication(sys.argv[:1])
    page = QWebEnginePage()
    values: list[Any] = []

    def begin(loaded: bool) -> None:
        end = "value => { window.done = JSON.stringify([value]); }"
        failed = "error => { window.done = JSON.stringify([String(error)]); }"
        script = f"(async () => {{ {steps[len(values)][1]} }})().then({end}, {failed})"
        page.runJavaScript(f"window.done = ''; {script}")
        QTimer.singleShot(POLL, look)

    def look() -> None:
        page.runJavaScript("window.done", take)

    def take(done: Any) -> None:
        if not done:
            QTimer.singleShot(POLL, look)
            return
        values.extend(json.loads(done))
        if len(values) < len(steps):
            open_next()
        else:
            application.quit()

    def open_next() -> None:
        page.load(QUrl(steps[len(values)][0]))

    page.loadFinished.connect(begin)
    open_next()
    application.exec()
    return values


if __name__ == "__main__":
    print(json.dumps(values_of(json.loads(sys.argv[1]), json.loads(sys.argv[2]))), flush=True)
    os._exit(0)  # Qt may wait for processes of its own
