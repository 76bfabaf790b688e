"""The names of records and fields in files that earlier versions saved."""

from __future__ import annotations

from credo.streams.codec import Json

__all__ = ["upgraded"]

RECORDS = {
    "BBB": "BBBRule",
    "BLR": "BLRRule",
    "BOG": "BOGRule",
    "BONG": "BONGRule",
    "LinearizedFisher": "LinearizedEmpiricalFisher",
    "LinearizedHessian": "LinearizedGaussNewton",
    "MonteCarloFisher": "MonteCarloEmpiricalFisher",
    "Standardised": "Standardized",
}
"""The former names of records, with the present ones."""

FIELDS = {
    "ChangeProbability": {"rate": "learning_rate"},
    "ConstantHazard": {"rate": "hazard"},
    "Continuous": {"jump": "jump_var"},
    "Decay": {"gamma": "forgetting", "q": "var"},
    "Experts": {"rate": "learning_rate"},
    "Inflation": {"alpha": "rate"},
    "InverseGamma": {"forget": "forgetting"},
    "LinearGaussian": {"noise": "cov"},
    "OrnsteinUhlenbeck": {"gamma": "forgetting"},
    "Piece": {"jump": "jump_var"},
    "RandomWalk": {"q": "var"},
    "WeightedPast": {"rate": "learning_rate"},
}
"""The former names of fields, by the present name of their record."""


def upgraded(code: Json) -> Json:
    """The structure in a file's header, with every record and field under its present name."""
    if isinstance(code, list):
        return [upgraded(child) for child in code]
    if not isinstance(code, dict):
        return code
    former, contents = code.get("record"), code.get("fields")
    if not isinstance(former, str) or not isinstance(contents, dict):
        return {name: upgraded(child) for name, child in code.items()}
    name = RECORDS.get(former, former)
    present = FIELDS.get(name, {})
    fields: Json = {present.get(field, field): upgraded(child) for field, child in contents.items()}
    return {"record": name, "fields": fields}
