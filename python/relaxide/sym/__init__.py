"""Symbolic arithmetic over integers: what is known of variables, and what follows for expressions."""

from .analyzer import Analyzer, CompareResult, ConstIntBound, ConstraintScope, ModularSet, ProofStrength

__all__ = ["Analyzer", "CompareResult", "ConstIntBound", "ConstraintScope", "ModularSet", "ProofStrength"]
