"""Files that change after they were opened: no signal, and never other numbers."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import os, pickle, sys, threading, time
import numpy as np
import sardonyx as sx
from sardonyx.format import files

what, when, cache, provider, weights, windows, folder = sys.argv[1:]
os.chdir(folder)
os.environ["SARDONYX_CACHE"] = "off" if cache == "off" else folder + "/cache"
if windows == "windows":
    files.LARGE = 1
    files.LargeFile.WINDOW = 1 << 12
numbers = np.random.default_rng(0)
W = numbers.standard_normal((128, 128), np.float32)
x = numbers.standard_normal((3, 128), np.float32)


def write(name, scale):
    graph = sx.Graph("g")
    given = graph.add_input("x", sx.TensorType(sx.DataType.FLOAT, ("n", 128)))
    constant = graph.add_initializer(sx.Tensor(W * scale, "w"), "w")
    product = graph.add("MatMul", [given, constant], ["p"])
    graph.outputs.append(graph.add("Neg", [product.output], ["y"]).output)
    model = sx.Model(graph, sx.Opsets({"": 21}), 10)
    sx.save(model, name + ".onnx", external_data=name + ".bin" if weights == "outside" else None)
    for item in (name + ".onnx", name + ".bin"):
        if os.path.exists(item):
            os.utime(item, (10**9, 10**9))


write("model", 1)
write("other", 2)
suffix = ".bin" if weights == "outside" else ".onnx"


def change():
    if what == "cut":
        os.truncate("model" + suffix, 100)
    elif what == "overwrite":
        content = open("other" + suffix, "rb").read()
        with open("model" + suffix, "r+b") as file:
            file.write(content)
    elif what == "delete":
        os.unlink("model" + suffix)
    else:
        os.replace("other" + suffix, "model" + suffix)


def judge(result):
    print("same" if np.allclose(result[0], -(x @ W), atol=1e-3) else "OTHER NUMBERS")


def open_session(source="model.onnx"):
    return sx.InferenceSession(source, providers=[provider])


def work():
    if when == "load":
        model = sx.load("model.onnx")
        change()
        judge(sx.evaluate(model, {"x": x}))
        judge(open_session(model).run(None, {"x": x}))
        sx.to_bytes(model)
        return
    session = open_session()
    if when == "again":
        session = open_session()
    if when == "during":
        threading.Timer(0.05, change).start()
        end = time.monotonic() + 0.2
        while time.monotonic() < end:
            result = session.run(None, {"x": x})
        judge(result)
        return
    judge(session.run(None, {"x": x}))
    change()
    judge(session.run(None, {"x": x}))
    print([item.name for item in session.get_inputs()])
    judge(session.run(["y", "p"], {"x": x}))
    judge(pickle.loads(pickle.dumps(session)).run(None, {"x": x}))


try:
    work()
except sx.InternalError:
    raise
except sx.ChangedFileError as error:
    print("changed:", error)
except sx.SardonyxError as error:
    print("refused:", error)
"""

CPU, REFERENCE = "CPUExecutionProvider", "ReferenceExecutionProvider"


@pytest.mark.parametrize("what", ["cut", "overwrite", "delete", "replace"])
@pytest.mark.parametrize(
    ("when", "cache", "provider", "weights", "windows"),
    [
        ("load", "off", CPU, "inside", "whole"),
        ("load", "off", CPU, "inside", "windows"),
        ("load", "off", REFERENCE, "outside", "whole"),
        ("between", "off", CPU, "inside", "windows"),
        ("between", "off", REFERENCE, "inside", "windows"),
        ("between", "off", REFERENCE, "outside", "whole"),
        ("again", "on", CPU, "outside", "whole"),
        ("again", "on", CPU, "inside", "windows"),
        ("during", "off", REFERENCE, "inside", "windows"),
        ("during", "off", CPU, "outside", "whole"),
    ],
)
def test_a_changed_file_is_an_error_or_no_matter(
    tmp_path: Path, what: str, when: str, cache: str, provider: str, weights: str, windows: str
) -> None:
    arguments = [what, when, cache, provider, weights, windows, str(tmp_path)]
    command = [sys.executable, "-c", PROGRAM, *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "OTHER NUMBERS" not in done.stdout
    lines = done.stdout.splitlines()
    if when == "during":
        assert lines == ["same"]
    elif when in ("between", "again"):
        assert lines[:2] == ["same", "same"]
    if what == "replace" and weights == "inside":
        assert "changed" not in done.stdout and "refused" not in done.stdout
    elif when == "load" and what in ("cut", "overwrite"):
        assert lines[-1].startswith("changed:") and "open" in lines[-1]
