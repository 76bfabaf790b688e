"""The examples below the help of each command."""

from __future__ import annotations

__all__ = ["of"]

_EXAMPLES = {
    "learn": """
credo learn mnist
credo learn prices.csv --target price --test new.csv
credo learn electricity --drift walk:3e-4
cat log.jsonl | credo learn - --target clicked --predictions -
credo learn prices.csv --target price --predictions p.csv --keep id,date
credo learn prices.csv --resume runs/prices
credo learn demand.csv --time hour --target load --horizon 24
""",
    "predict": """
credo predict runs/prices new.csv --out predictions.csv
credo predict runs/prices new.csv --keep id --level 0.5
cat new.jsonl | credo predict runs/prices/belief.credo -
""",
    "keyed": """
credo keyed clicks.csv --key user --target spent --out runs/users
credo keyed clicks.csv --key user --target spent --out runs/users --resume
credo keyed a.csv --key user --target y --out runs/u --shards 4 --workers 2
credo keyed clicks --key user --target y --time day --out runs/u --follow 10
""",
    "reproduce": """
credo reproduce
credo reproduce kf-linreg
credo reproduce moons --full --out results
""",
    "serve": """
credo serve models
credo serve models --host 0.0.0.0 --port 8000 --tokens tokens
credo serve models --verify
""",
    "datasets": """
credo datasets
credo learn digits
""",
    "cache": """
credo cache
credo cache --clear
""",
    "bandit run": """
credo bandit run statlog --seeds 5
credo bandit run bernoulli --agent beta --policy thompson
credo bandit run linear --steps 2000 --delay 10 --out runs/late
""",
    "bandit evaluate": """
credo bandit evaluate log.jsonl --policy uniform --policy red
credo bandit evaluate log.jsonl --report seen
""",
    "bandit replay": """
credo bandit replay log.jsonl
""",
    "bandit decide": """
credo bandit decide shop.credo - --arms red,blue --log log.jsonl
cat requests.jsonl | credo bandit decide shop.credo -
""",
    "flow train": """
credo flow train flow.toml
credo flow train flow.toml --resume runs/flow-flow
""",
    "flow evaluate": """
credo flow evaluate linear-10
credo flow evaluate runs/flow-flow
""",
}


def of(command: str) -> str:
    """The examples of a command, as they stand below its help."""
    lines = _EXAMPLES[command].strip().splitlines()
    return "\n".join(["", "Examples:", "", *(f"  {line}" for line in lines), ""])
