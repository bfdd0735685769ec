"""The interface between ONNX and what runs its models."""
