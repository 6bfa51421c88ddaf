"""Traces for others: redacted and proven equal in every figure, annotated for a viewer, and as tables."""
