"""Tables: read CSV, TSV, JSON lines, parquet and DataFrames in chunks and encode their rows for a learner.

`open_table` and `from_frame` give a `TableSource`, iterated over in `Chunk`s of raw cells; `infer_schema`
says from the first chunks what each column means; `Encoder` turns chunks into float32 features and targets,
standardising online by the rows before each row; `TargetScaler` does so for a regression target. NumPy only.

    source = open_table("prices.csv") schema = infer_schema(source.peek(1000), "class") encoder =
    Encoder(schema) state = encoder.initial() for chunk in source:
        state, x, y, report = encoder.encode(state, chunk)
"""

from credo.tables.chunks import BadRow, Chunk
from credo.tables.encoder import Encoder, EncodeReport, EncoderState
from credo.tables.infer import infer_schema
from credo.tables.moments import Moments, ScaledTarget, TargetScaler
from credo.tables.opening import FORMATS
from credo.tables.readers import json_chunk
from credo.tables.schema import ColumnSpec, Dropped, Schema, TargetSpec
from credo.tables.sources import TableSource, from_frame, open_table

__all__ = [
    "FORMATS",
    "BadRow",
    "Chunk",
    "ColumnSpec",
    "Dropped",
    "EncodeReport",
    "Encoder",
    "EncoderState",
    "Moments",
    "ScaledTarget",
    "Schema",
    "TableSource",
    "TargetScaler",
    "TargetSpec",
    "from_frame",
    "infer_schema",
    "json_chunk",
    "open_table",
]
