"""One learner for each key: the beliefs of thousands of users, sensors or articles in one matrix.

The belief of key k is a vector of W words, a row of the matrix. A call of n rows is cut into T tiles of B
different keys, T = max(most rows of a key, n / B), in which the rows of a key keep their order. One compiled
program goes through the tiles: it gathers B rows of the matrix, forecasts, scores and learns them side by
side, and scatters them back. Keys, eviction and checkpoints are NumPy, SQLite and files around it.
"""

from credo.streams.keyed.keyed import Keyed, KeyedRows

__all__ = ["Keyed", "KeyedRows"]
