"""Small changes to whole models: dimensions of inputs and outputs, dummies for large weights."""
