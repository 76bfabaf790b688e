"""The way in which the cells of a column are written, where that is not plainly: dates and times.

The style of a column is found in its first rows, saved with its meaning, and reads every later cell; what
does not fit it is no time. A time that is to come is written in the style of those before.
"""

from __future__ import annotations

import datetime as dt
import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from credo.core.errors import FormatError
from credo.core.forms import require_form
from credo.tables.cells import cell_text

__all__ = ["ISO", "NUMBER", "Style", "find_date_style", "numbered_times", "telling"]

StyleKind: TypeAlias = Literal["date", "epoch", "number"]
"""The kind of what is written."""

EPOCHS: Mapping[str, float] = {"seconds": 1.0, "milliseconds": 1e3}
"""The units of numbers that count from 1970 on, and how many are a second."""

# The least share of the cells that must be written in a style, how many cells the styles are looked for in,
# the least number of cells that show that they grow, and of numbers that are all dates by chance never.
FITTING = 0.95
LOOKED = 20
GROWING = 20
DISTINCT = 3

# The years of numbers that may be times, the smallest number that may be one, and the first year of two
# digits that is in the century before.
EARLIEST = 1990
SMALLEST = 1e7
FIRST_YEAR = 1900
LAST_YEAR = 2100
PIVOT = 69

_EPOCH = dt.datetime(1970, 1, 1)
_LONGEST = 60
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH_NAMES = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_ZONES = {
    **{"Z": 0, "UTC": 0, "GMT": 0},
    **{"EDT": -4, "EST": -5, "CDT": -5, "CST": -6, "MDT": -6, "MST": -7, "PDT": -7, "PST": -8},
}
_NAME = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    "|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
)
_FIELDS = {
    "Y": r"(?P<Y>\d{4})",
    "y": r"(?P<y>\d{2})",
    "m": r"(?P<m>\d{1,2})",
    "d": r"(?P<d>\d{1,2})",
    "b": rf"(?P<b>{_NAME})\.?",
    "B": rf"(?P<b>{_NAME})",
    "a": r"(?P<a>mon|tues?|wed|thu(?:rs?)?|fri|sat|sun)\.?",
    "A": r"(?P<a>mon|tues|wednes|thurs|fri|satur|sun)day",
    "q": r"(?P<q>[1-4])",
    "G": r"(?P<G>\d{4})",
    "V": r"(?P<V>\d{2})",
    "H": r"(?P<H>\d{2})",
    "M": r"(?P<M>\d{2})",
    "S": r"(?P<S>\d{2})",
}
"""The fields of a date, as in GNU's `date`, and %q for the quarter."""

_TIME = (
    r"(?:(?P<gap>T|,? +)(?P<H>\d{1,2}):(?P<M>\d{2})(?::(?P<S>\d{2})(?:\.(?P<f>\d{1,9}))?)?"
    r"(?P<blank> ?)(?P<p>[ap]\.?m\.?)?"
    rf"(?P<apart> ?)(?P<z>{'|'.join(_ZONES)}|[-+]\d{{2}}:?\d{{2}})?(?: \([A-Z]{{2,5}}\))?)?"
)
_WEEKDAY = re.compile(r"(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*?(?P<full>day)?(?P<gap>,? )", re.IGNORECASE)
_MONTH_NAME = re.compile(rf"(?<![a-z])(?:{_NAME})(?![a-z])", re.IGNORECASE)
_DIRECTIVE = re.compile(r"%([-^]?)([a-zA-Z]|\d?f|:z)")

_COMPACT = ("%Y%m%d", "%Y%m%d%H%M", "%Y%m%d%H%M%S")
"""Dates that are whole numbers."""

# Where two read the same cells, the earlier one stands: days first with dots and hyphens, months first with
# slashes.
_DATES = (
    *("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%Y %m %d"),
    *("%d.%m.%Y", "%m.%d.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d-%m-%Y", "%m-%d-%Y"),
    *("%d.%m.%y", "%m/%d/%y", "%d/%m/%y"),
    *("%d %b %Y", "%d-%b-%Y", "%d/%b/%Y", "%d. %b %Y", "%d-%b-%y", "%d %b %y"),
    *("%b %d, %Y", "%b %d %Y", "%Y %b %d", "%Y-%b-%d"),
    *("%G-W%V", "%GW%V", "%Y-Q%q", "%YQ%q", "%Y Q%q", "%Y/Q%q", "Q%q %Y", "Q%q-%Y", "Q%q/%Y"),
    *("%Y-%m", "%Y/%m", "%m/%Y", "%b %Y", "%b-%Y", "%b-%y"),
)
_PAIRS = [(f"%d{mark}%m{mark}%{year}", f"%m{mark}%d{mark}%{year}") for mark in ".-/" for year in "Yy"]
_OTHER_ORDER = {**dict(_PAIRS), **{month_first: day_first for day_first, month_first in _PAIRS}}
"""The dates of which both orders are in use, with the other one."""


@dataclass(frozen=True)
class Style:
    """The way in which the cells of a column are written.

    Arguments:
        kind: "date", "epoch" for a number of seconds or milliseconds since 1970, or "number".
        date: the form of a date in the fields of GNU's `date`, such as "%d.%m.%Y"; "" for ISO 8601. Cells may
            have a time of day behind it, and one digit where the form has two.
        clock: the form of the time of day that is written behind a date, such as " %H:%M".
        unit: the unit of an epoch, "seconds" or "milliseconds".

    Example:
        >>> style = Style("date", "%d.%m.%Y")
        >>> style.moment("31.1.2023 12:30"), style.moment("2023-01-31")
        (datetime.datetime(2023, 1, 31, 12, 30), None)
        >>> style.text(86400.0, 0.0)
        '02.01.1970'
    """

    kind: StyleKind
    date: str = ""
    clock: str = ""
    unit: str = ""

    def moment(self, text: str) -> dt.datetime | None:
        """The time that a text says, with its zone if it names one; None if it is not written so."""
        match = _form(self.date).fullmatch(text)
        if match is None:
            return None
        try:
            return _moment_of(match.groupdict())
        except ValueError:
            return None

    @property
    def order(self) -> str:
        """The order of a date whose parts are numbers, in words, where several are in use; else nothing."""
        bare = _bare(self.date)
        if bare not in _OTHER_ORDER:
            return ""
        if bare.startswith("%d"):
            return "day first"
        return "month first"

    def text(self, seconds: float, offset: float) -> str:
        """A time as it is written, in seconds since 1970 by a clock that is `offset` seconds ahead of UTC."""
        if self.kind == "epoch":
            return f"{(seconds - offset) * EPOCHS[self.unit]:.0f}"
        moment = _EPOCH + dt.timedelta(seconds=round(seconds, 6))
        return _DIRECTIVE.sub(
            lambda found: _field(found[1], found[2], moment, offset), self.date + self.clock
        )

    @staticmethod
    def from_saved(saved: Mapping[str, Any] | None) -> Style | None:
        """The inverse of `dataclasses.asdict`, and None for None; a FormatError says where it is no style."""
        if saved is None:
            return None
        require_form(saved, Style, "style")
        style = Style(**saved)
        try:
            fine = len(style.date + style.clock) <= _LONGEST and bool(_form(style.date))
        except (KeyError, re.error):  # another field, or the same twice
            fine = False
        if not fine:
            raise FormatError.must_be("style.date", "a date in the fields of GNU's date", style.date)
        if style.kind == "epoch" and style.unit not in EPOCHS:
            raise FormatError.must_be("style.unit", f"one of {', '.join(EPOCHS)}", style.unit)
        return style


ISO = Style("date")
NUMBER = Style("number")
"""The styles of times as ISO 8601 writes them, and of plain numbers; a column that has one of them has none
of its own."""


def _bare(date: str) -> str:
    """A form of dates without a weekday, and regardless of how its fields are spelled out."""
    return re.sub(r"^%[aA],? ", "", _DIRECTIVE.sub(r"%\2", date)).replace("%B", "%b")


@functools.lru_cache(256)
def _form(date: str) -> re.Pattern[str]:
    """The cells of a form of dates."""
    bare = _DIRECTIVE.sub(r"%\2", date)
    parts: list[str] = []
    end = 0
    for found in _DIRECTIVE.finditer(bare):
        parts.append(re.escape(bare[end : found.start()]))
        parts.append(_FIELDS[found[2]])
        end = found.end()
    parts.append(re.escape(bare[end:]))
    form = "".join(parts)
    if bare in _COMPACT:
        form = form.replace("{1,2}", "{2}")
    if not bare.endswith(("%q", "%V", "%H%M", "%S")) and ("d" in bare):
        form += _TIME
    return re.compile(form, re.IGNORECASE | re.ASCII)


def _moment_of(parts: Mapping[str, str | None]) -> dt.datetime:
    """The time of the fields of a date; a ValueError if there is none such."""
    year = int(parts.get("Y") or parts.get("G") or 0)
    if (short := parts.get("y")) is not None:
        year = int(short) + (2000 if int(short) < PIVOT else 1900)
    month = int(parts.get("m") or 1)
    if (name := parts.get("b")) is not None:
        month = _MONTHS.index(name[:3].lower()) + 1
    if (quarter := parts.get("q")) is not None:
        month = 3 * int(quarter) - 2
    day = dt.date(year, month, int(parts.get("d") or 1))
    if (week := parts.get("V")) is not None:
        day = dt.date.fromisocalendar(year, int(week), 1)
    hour = int(parts.get("H") or 0)
    if (half := parts.get("p")) is not None:
        if not 1 <= hour <= 12:
            raise ValueError(hour)
        hour = hour % 12 + (12 if half[0] in "pP" else 0)
    micros = int((parts.get("f") or "")[:6].ljust(6, "0"))
    time = dt.time(hour, int(parts.get("M") or 0), int(parts.get("S") or 0), micros)
    return dt.datetime.combine(day, time, _zone_of(parts.get("z")))


def _zone_of(zone: str | None) -> dt.timezone | None:
    if zone is None:
        return None
    if zone.upper() in _ZONES:
        return dt.timezone(dt.timedelta(hours=_ZONES[zone.upper()]))
    ahead = dt.timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
    return dt.timezone(-ahead if zone[0] == "-" else ahead)


def _field(flag: str, field: str, moment: dt.datetime, offset: float) -> str:
    """A field of a time, as GNU's `date` writes it in English."""
    numbers = {
        "m": moment.month,
        "d": moment.day,
        "y": moment.year % 100,
        "H": moment.hour,
        "I": (moment.hour + 11) % 12 + 1,
        "M": moment.minute,
        "S": moment.second,
        "V": moment.isocalendar().week,
    }
    if field in numbers:
        return str(numbers[field]) if flag == "-" else f"{numbers[field]:02d}"
    minutes = abs(round(offset / 60))
    sign = "-" if offset < 0 else "+"
    words = {
        "Y": f"{moment.year:04d}",
        "G": f"{moment.isocalendar().year:04d}",
        "q": str((moment.month + 2) // 3),
        "b": _MONTH_NAMES[moment.month - 1][:3],
        "B": _MONTH_NAMES[moment.month - 1],
        "a": _DAY_NAMES[moment.weekday()][:3],
        "A": _DAY_NAMES[moment.weekday()],
        "p": "AM" if moment.hour < 12 else "PM",
        "P": "am" if moment.hour < 12 else "pm",
        "z": f"{sign}{minutes // 60:02d}{minutes % 60:02d}",
        ":z": f"{sign}{minutes // 60:02d}:{minutes % 60:02d}",
    }
    if field.endswith("f"):
        return f"{moment.microsecond:06d}"[: int(field[:-1] or 6)]
    word = words.get(field, "")
    return word.upper() if flag == "^" else word


def find_date_style(present: Sequence[object]) -> Style | None:
    """The style in which nearly all of these cells are dates that are not as ISO 8601 writes them."""
    texts = [cell.strip() for cell in present if isinstance(cell, str)]
    if len(texts) < FITTING * len(present) or not texts:
        return None
    some = [text for text in texts[:LOOKED] if len(text) <= _LONGEST]
    bases = [date for date in _candidates(some) if any(map(_form(date).fullmatch, some))]
    read = [sum(Style("date", date).moment(text) is not None for text in texts) for date in bases]
    if not read or max(read) < FITTING * len(present):
        return None
    return _as_written(bases[read.index(max(read))], texts)


def _candidates(texts: Sequence[str]) -> list[str]:
    """The forms of dates that some texts may have, by their marks and names: few, since each is compiled."""
    found: dict[str, None] = {}
    for text in texts:
        weekday = _WEEKDAY.match(text)
        rest = text[weekday.end() :] if weekday else text
        if not rest[:1].isalnum() or not any(map(str.isdigit, rest)):
            continue
        named = _MONTH_NAME.search(rest) is not None
        for date in _DATES:
            marks = _DIRECTIVE.sub("", date)
            if ("%b" in date) == named and all(mark in rest for mark in marks):
                full = "A" if weekday and weekday["full"] else "a"
                found[f"%{full}{weekday['gap']}{date}" if weekday else date] = None
    order = {date: place for place, date in enumerate(_DATES)}
    return sorted(found, key=lambda date: order.get(_bare(date), 0))


def telling(style: Style, cells: Sequence[object]) -> tuple[str, bool]:
    """An example of the dates of a style that says as much of it as can be, and whether the cells decide on
    it: whether fewer of them are dates if day and month change places.
    """
    texts = [cell_text(cell) for cell in cells]
    mine = [(text, moment) for text in texts if (moment := style.moment(text)) is not None]
    other = _OTHER_ORDER.get(_bare(style.date))
    if other is None:
        return mine[0][0], True
    turned = Style("date", other)
    others = sum(turned.moment(text) is not None for text in texts)
    sure = [text for text, _ in mine if turned.moment(text) is None]
    unlike = [text for text, moment in mine if moment.day != moment.month]
    return [*sure, *unlike, mine[0][0]][0], others < len(mine)


def _as_written(date: str, texts: Sequence[str]) -> Style:
    """The style of texts with this form of dates, with one digit where they have one, and their names."""
    found = [match for text in texts if (match := _form(date).fullmatch(text)) is not None]
    parts = [match.groupdict() for match in found]
    for field in "md":
        if any(len(one.get(field) or "00") == 1 for one in parts):
            date = date.replace(f"%{field}", f"%-{field}")
    names = [name for one in parts if (name := one.get("b")) is not None]
    if names:
        full = any(len(name) > 4 or name.lower() in ("june", "july") for name in names)
        upper = "^" if all(map(str.isupper, names)) else ""
        date = date.replace("%b", f"%{upper}{'B' if full else 'b'}")
    return Style("date", date, _clock_of(parts))


def _clock_of(parts: Sequence[Mapping[str, str | None]]) -> str:
    """The form of the time of day that some dates have behind them."""
    timed = [one for one in parts if one.get("gap")]
    if not timed:
        return ""
    first = timed[0]
    half = first["p"]
    single = any(len(one["H"] or "") == 1 for one in timed)
    clock = f"{first['gap']}%{'-' if single else ''}{'I' if half else 'H'}:%M"
    if first["S"]:
        clock += ":%S"
    if first["f"]:
        clock += f".%{min(len(first['f']), 6)}f"
    if half:
        clock += (first["blank"] or "") + ("%P" if half.islower() else "%p")
    zone = first["z"]
    if zone is None:
        return clock
    clock += (first["apart"] or "") if half else (first["blank"] or "")
    if zone[0] not in "+-":
        return clock + zone
    return clock + ("%:z" if ":" in zone else "%z")


_TIME_WORDS = frozenset(
    (
        *("date", "dates", "day", "datetime", "time", "times", "timestamp", "ts", "epoch", "unix", "utc"),
        *("unixtime", "when", "created", "updated", "modified", "month", "period"),
    )
)
_ID_WORDS = frozenset(("id", "ids", "key", "no", "nr", "number", "code", "price", "amount", "index"))


def _words(name: str) -> list[str]:
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", str(name))
    return re.findall(r"[a-z]+", apart.lower())


def _says_time(name: str) -> bool:
    words = _words(name)
    return not _TIME_WORDS.isdisjoint(words) or words[-1:] == ["at"]


def numbered_times(
    name: str, present: Sequence[object], numbers: np.ndarray, certain: bool = False
) -> Style | None:
    """The style in which whole numbers are times: dates without marks, or seconds or milliseconds since 1970.

    They are dates if all are days from 1900 to 2100, and the column is called a time, or they are three at
    least. They count from 1970 on if all are times from 1990 to 2100 and the column is called a time, or if
    they are full minutes that never go back. `certain` says that they are times.
    """
    usable = numbers[np.isfinite(numbers)]
    if not usable.size or usable.min() < SMALLEST or not (usable == np.floor(usable)).all():
        return None
    called = certain or _says_time(name)
    if not called and not _ID_WORDS.isdisjoint(_words(name)):
        return None
    if called or len(np.unique(usable)) >= DISTINCT:
        for date in _COMPACT:
            if _all_days(date, present, certain):
                return Style("date", date)
    for unit, scale in EPOCHS.items():
        first = dt.datetime(EARLIEST, 1, 1) - _EPOCH
        last = dt.datetime(LAST_YEAR, 1, 1) - _EPOCH
        if first.total_seconds() <= usable.min() / scale and usable.max() / scale <= last.total_seconds():
            minutes = len(usable) >= GROWING and not (usable % (60 * scale)).any()
            if called or (minutes and bool((np.diff(usable) >= 0).all()) and np.ptp(usable) > 0):
                return Style("epoch", unit=unit)
    return None


def _all_days(date: str, present: Sequence[object], certain: bool) -> bool:
    """Whether all cells are dates of this form, and of a year that is likely where they need not be times."""
    style = Style("date", date)
    for cell in present:
        moment = style.moment(cell_text(cell))
        if moment is None or not (certain or FIRST_YEAR <= moment.year <= LAST_YEAR):
            return False
    return True
