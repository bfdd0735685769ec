"""The compiler: a model becomes native code, run by one call."""
