"""The package this stands in for."""

package_name = "onnxruntime"
