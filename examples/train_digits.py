"""Train a small digit classifier on scikit-learn's bundled digits and write it as ONNX.

    pip install sardonyx[examples]
    python examples/train_digits.py

Writes `digits.onnx` beside this file, and `digits_input.npy`, one image to try it on.
"""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import sardonyx as sx

FOLDER = Path(__file__).parent


def train() -> tuple[MLPClassifier, np.ndarray, np.ndarray]:
    """A trained network, with images and labels it has not seen."""
    images, labels = load_digits(return_X_y=True)
    split = train_test_split(images / 16, labels, test_size=0.25, random_state=0, stratify=labels)
    network = MLPClassifier((32,), max_iter=600, alpha=1e-3, random_state=0)
    network.fit(split[0], split[2])
    return network, split[1], split[3]


def export(network: MLPClassifier) -> sx.Model:
    """The network as a model: images of 64 pixels from 0 to 16 -> probabilities of ten digits."""
    graph = sx.Graph("digits")
    pixels = graph.add_input("pixels", sx.TensorType(sx.DataType.FLOAT, ("batch", 64)))
    op = sx.Builder(graph, opset=21)
    first, second = (weights.astype(np.float32) for weights in network.coefs_)
    bias1, bias2 = (bias.astype(np.float32) for bias in network.intercepts_)
    hidden = op.Relu(op.Gemm(pixels, first / 16, bias1))
    result = op.Softmax(op.Gemm(hidden, second, bias2), axis=1)
    result.name = "probabilities"
    result.type = sx.TensorType(sx.DataType.FLOAT, ("batch", 10))
    graph.outputs.append(result)
    model = sx.Model(graph, sx.Opsets({"": 21}), ir_version=10)
    model.producer_name = "sardonyx"
    model.doc_string = "Handwritten digits of 8x8 pixels, a network with one hidden layer of 32."
    return model


def main() -> None:
    """Train, export, and say how good the exported model is."""
    network, images, labels = train()
    model = export(network)
    sx.check(model)
    sx.save(model, FOLDER / "digits.onnx")
    pixels = (images * 16).astype(np.float32)
    np.save(FOLDER / "digits_input.npy", pixels[:1])
    (probabilities,) = sx.evaluate(model, {"pixels": pixels})
    right = np.mean(probabilities.argmax(1) == labels)
    print(f"digits.onnx: {right:.1%} of {len(labels)} images it has not seen are read right")


if __name__ == "__main__":
    main()
