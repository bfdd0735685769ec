"""Whole-graph functions from model to model."""
