"""Snippets as users of skl2onnx, transformers and torch write them, on the installed stand-ins."""

import importlib.util
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

SKLEARN = """
import numpy as np
import onnxruntime as rt
from skl2onnx import to_onnx
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

X, y = load_iris(return_X_y=True)
X = X.astype(np.float32)
for model in (RandomForestClassifier(10, random_state=0),
              make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))):
    model.fit(X, y)
    onx = to_onnx(model, X[:1])
    with open("model.onnx", "wb") as f:
        f.write(onx.SerializeToString())
    sess = rt.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
    input_name = sess.get_inputs()[0].name
    label_name = sess.get_outputs()[0].name
    pred_onx = sess.run([label_name], {input_name: X})[0]
    assert (pred_onx == model.predict(X)).all()
    zipped = sess.run(None, {input_name: X[:3]})[1]
    assert isinstance(zipped, list) and set(zipped[0]) == {0, 1, 2}
    np.testing.assert_allclose(
        [[row[c] for c in range(3)] for row in zipped], model.predict_proba(X[:3]), atol=1e-5)
"""

TRANSFORMERS = """
import numpy as np
import torch
import transformers.utils

# A torchvision that does not fit its torch must not decide this.
transformers.utils.is_torchvision_available = lambda: False
from transformers import BertConfig, BertModel

torch.manual_seed(0)
config = BertConfig(vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                    intermediate_size=64, max_position_embeddings=32, attn_implementation="eager")
model = BertModel(config).eval()
model.config.return_dict = False
ids = torch.randint(0, 50, (2, 7))
mask = torch.ones(2, 7, dtype=torch.long)

class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bert = model
    def forward(self, input_ids, attention_mask):
        return self.bert(input_ids=input_ids, attention_mask=attention_mask)[0]

encoder = Encoder().eval()
torch.onnx.export(
    encoder, (ids, mask), "bert.onnx", input_names=["input_ids", "attention_mask"],
    output_names=["last_hidden_state"], dynamo=False, opset_version=17,
    dynamic_axes={"input_ids": {0: "batch", 1: "sequence"},
                  "attention_mask": {0: "batch", 1: "sequence"}})

from onnxruntime import GraphOptimizationLevel, InferenceSession, SessionOptions

options = SessionOptions()
options.intra_op_num_threads = 1
options.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
session = InferenceSession("bert.onnx", options, providers=["CPUExecutionProvider"])
for batch, length in ((2, 7), (1, 3), (3, 11)):
    ids = torch.randint(0, 50, (batch, length))
    mask = torch.ones(batch, length, dtype=torch.long)
    mask[0, -1] = 0
    names = [item.name for item in session.get_inputs()]
    feeds = dict(zip(names, (ids.numpy(), mask.numpy())))
    hidden = session.run(["last_hidden_state"], feeds)[0]
    with torch.no_grad():
        expected = encoder(ids, mask).numpy()
    np.testing.assert_allclose(hidden, expected, atol=1e-4)
"""

BINDING = """
import numpy as np
import torch
import onnxruntime as ort

class Net(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.softmax(x @ x.transpose(1, 2), -1)

net = Net()
torch.onnx.export(net, (torch.ones(1, 3, 4),), "net.onnx", input_names=["x"], output_names=["y"],
                  dynamo=False, dynamic_axes={"x": {0: "n"}})
session = ort.InferenceSession("net.onnx", providers=["CPUExecutionProvider"])
x = torch.randn(2, 3, 4)
y = torch.empty(2, 3, 3)
binding = session.io_binding()
binding.bind_input("x", "cpu", 0, np.float32, tuple(x.shape), x.data_ptr())
binding.bind_output("y", "cpu", 0, np.float32, tuple(y.shape), y.data_ptr())
session.run_with_iobinding(binding)
assert torch.allclose(y, net(x), atol=1e-5)
value = ort.OrtValue.ortvalue_from_numpy(x.numpy())
(result,) = session.run_with_ort_values(["y"], {"x": value})
assert torch.allclose(torch.from_dlpack(result), net(x), atol=1e-5)
try:
    session.run(None, {"x": x.double().numpy()})
    raise SystemExit("no error")
except ort.capi.onnxruntime_pybind11_state.InvalidArgument as error:
    assert "'x'" in str(error)
"""

SNIPPETS = {
    "sklearn": (SKLEARN, ("skl2onnx", "sklearn")),
    "transformers": (TRANSFORMERS, ("transformers", "torch", "onnx")),
    "binding": (BINDING, ("torch", "onnx")),
}


@pytest.mark.parametrize("name", list(SNIPPETS))
def test_snippet(name: str, tmp_path: Path) -> None:
    code, needs = SNIPPETS[name]
    for package in needs:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    head = textwrap.dedent("""
        import sardonyx.compat
        sardonyx.compat.install()
        import onnxruntime
        assert "sardonyx" in onnxruntime.__file__
    """)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", head + code], cwd=tmp_path, capture_output=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()[-3000:]
