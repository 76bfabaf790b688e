"""The road from a raw row to a learner, which sessions and estimators share."""
