"""The release of onnxruntime whose API this is."""

VERSION = "1.31.1"
