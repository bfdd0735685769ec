"""The models that timings and simplification are judged by, built with fixed random weights.

    python -m benchmarks.models [name ...] [--exporter dynamo|torchscript] [--folder build/models]

A model is exported once and kept, with its inputs beside it: `iterate_models` gives those that are
there and builds the others. Only building needs torch, transformers and skl2onnx.
"""

import argparse
import contextlib
import importlib
import io
import json
import logging
import os
import shutil
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Feeds = dict[str, np.ndarray]

FOLDER = Path("build/models")
EXPORTERS = ("dynamo", "torchscript")
SHARED = {"silero-vad": "silero_vad", "ppocr": "ppocr_v3_det"}
"""Models by strangers, from the folder that SARDONYX_TEST_MODELS names."""

NETWORKS = {
    "resnet50": "vision", "mobilenetv2": "vision", "efficientnet-b0": "vision",
    "convnext-tiny": "vision", "vit-b16": "vision", "swin-tiny": "vision", "detector": "vision",
    "segformer-b0": "vision", "bert-base": "language", "distilbert": "language",
    "minilm-l6": "language", "whisper-tiny-encoder": "language", "gpt2-prefill": "language",
    "gpt2-decode": "language", "llama-decode": "language", "lstm": "classic", "gru": "classic",
    "small-mlp": "classic", "wide-mlp": "classic",
}  # fmt: skip
"""Torch modules, each by a function of that name in a module of this folder."""
TREES = ("random-forest", "gradient-boosting")
NAMES = (*NETWORKS, *TREES, *SHARED)


@dataclass(frozen=True)
class Model:
    """A model's file, and inputs to run it on, by a label that tells their sizes."""

    name: str
    path: Path
    variants: dict[str, Feeds]

    @property
    def feeds(self) -> Feeds:
        """The inputs of the first variant."""
        return next(iter(self.variants.values()))


def iterate_models(
    names: Sequence[str] = (), *, exporter: str = "dynamo", folder: Path = FOLDER
) -> Iterator[Model]:
    """Each of the models, or those named, built where it is not there yet.

    A model of `SHARED` whose file is absent is left out, with a note.
    """
    for name in names or NAMES:
        found = _shared_model(name) if name in SHARED else _made_model(name, exporter, folder)
        if found is None:
            print(f"{name}: no such file; set SARDONYX_TEST_MODELS", file=sys.stderr)
        else:
            yield found


def _shared_model(name: str) -> Model | None:
    folder = Path(os.environ.get("SARDONYX_TEST_MODELS", ""), SHARED[name])
    return Model(name, *_case(folder)) if (folder / "model.onnx").is_file() else None


def folder_models(folder: Path) -> Iterator[Model]:
    """Models by strangers: each in a folder of its own, with inputs in `case0.npz`."""
    for path in sorted(folder.glob("*/model.onnx")):
        yield Model(path.parent.name, *_case(path.parent))


def _case(folder: Path) -> tuple[Path, dict[str, Feeds]]:
    feeds: dict[str, Any] = {}
    with np.load(folder / "case0.npz", allow_pickle=False) as case:
        for key in case.files:
            kind, _, name = key.partition(":")
            if kind == "in":
                feeds[name] = case[key]
            elif kind == "injson":
                feeds[name] = {int(at): item for at, item in json.loads(str(case[key])).items()}
    return folder / "model.onnx", {"case": feeds}


def _made_model(name: str, exporter: str, folder: Path) -> Model:
    kind = "" if name in TREES else exporter
    path = folder / kind / f"{name}.onnx"
    inputs = path.with_suffix(".npz")
    if not (path.is_file() and inputs.is_file()):
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        variants = _build(name, exporter, part / path.name)
        arrays = {f"{label}|{key}": array for label, feeds in variants.items()
                  for key, array in feeds.items()}  # fmt: skip
        np.savez(inputs, **arrays)
        (part / path.name).replace(path)
        part.rmdir()
    return Model(name, path, _read_variants(inputs))


def _read_variants(path: Path) -> dict[str, Feeds]:
    variants: dict[str, Feeds] = {}
    with np.load(path, allow_pickle=False) as file:
        for key in file.files:
            label, name = key.split("|", 1)
            variants.setdefault(label, {})[name] = file[key]
    return variants


def _build(name: str, exporter: str, path: Path) -> dict[str, Feeds]:
    """Build and save one model; returns its inputs."""
    function = name.replace("-", "_")
    if name in TREES:
        return getattr(importlib.import_module("benchmarks.classic"), function)(path)
    if name not in NETWORKS:
        sys.exit(f"there is no model '{name}'; there are: {', '.join(NAMES)}")
    import torch

    torch.manual_seed(0)
    network = getattr(importlib.import_module(f"benchmarks.{NETWORKS[name]}"), function)()
    export(network, path, exporter)
    return network.variants


def export(network, path: Path, exporter: str, opset: int | None = None) -> None:
    """Save a network (`benchmarks.network.Network`) as ONNX by one of torch's exporters."""
    import torch

    from benchmarks.network import Adapter, vary

    module = Adapter(vary(network.module), torch.nn.Module.__call__)
    feeds = tuple(map(torch.from_numpy, network.example.values()))
    names = list(network.example)
    if exporter == "dynamo":
        sizes = [network.axes.get(key, {}) for key in names]
        choice = {"dynamic_shapes": (tuple(sizes),), "external_data": False, "dynamo": True}
    else:
        choice = {"dynamic_axes": network.axes | network.output_axes, "dynamo": False}
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    silence = contextlib.redirect_stdout(io.StringIO())
    with warnings.catch_warnings(), torch.no_grad(), silence:
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module, feeds, path, input_names=names, output_names=list(network.outputs),
            opset_version=opset, verbose=False, **choice,
        )  # fmt: skip


def main() -> None:
    """Build models and list them."""
    import onnx

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(NAMES))
    parser.add_argument("--exporter", choices=EXPORTERS, default="dynamo")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    given = parser.parse_args()
    print(f"{'model':22}{'opset':>6}{'nodes':>7}{'MB':>8}{'seconds':>9}  inputs")
    names = given.names or NAMES
    for name in names:
        print(f"{name:22}", end="", flush=True)
        begin = time.perf_counter()
        for model in iterate_models([name], exporter=given.exporter, folder=given.folder):
            taken = time.perf_counter() - begin
            proto = onnx.load(model.path, load_external_data=False)
            opset = next(item.version for item in proto.opset_import if item.domain == "")
            size = model.path.stat().st_size / 1e6
            nodes = len(proto.graph.node)
            print(f"{opset:6}{nodes:7}{size:8.1f}{taken:9.1f}  {', '.join(model.variants)}")


if __name__ == "__main__":
    main()
