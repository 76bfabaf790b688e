"""Logs of bandits: our JSON lines, VW's dsjson, and the Open Bandit data set, as one record."""

from credo.bandits.logs.log import LOG_FORMATS, Log, LogFormat, LogSource, ReadCounts

__all__ = ["LOG_FORMATS", "Log", "LogFormat", "LogSource", "ReadCounts"]
