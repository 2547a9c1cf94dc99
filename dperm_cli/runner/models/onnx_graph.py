"""Build an ONNX graph node by node, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from dperm_cli.core.errors import Unsupported
from dperm_cli.core.extras import say_how_to_install

OPSET = 19  # the first in which texts can be compared
FORM = 9  # of the file, which runtimes since 2023 read


class OnnxGraph:
    """Nodes, constants, inputs and outputs of one graph; values are told apart by their names.

    Raises:
        Unsupported: the package ``onnx`` is not installed.
    """

    def __init__(self) -> None:
        try:
            import onnx
        except ImportError:
            allowed = f"the package onnx is not installed: {say_how_to_install('onnx')}"
            raise Unsupported(f"format=onnx: {allowed}") from None
        self._onnx: Any = onnx
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._count = 0

    def add(self, kind: str, *values: str, **attributes: Any) -> str:
        """One node; the name of its result."""
        name = self._name(kind.lower())
        self._nodes.append(self._onnx.helper.make_node(kind, list(values), [name], **attributes))
        return name

    def constant(self, value: Any) -> str:
        """An array of float64, int64 or texts that is part of the graph; its name."""
        name, array = self._name("constant"), np.asarray(value)
        if array.dtype.kind == "U":
            texts = [text.encode() for text in array.reshape(-1)]
            kind = self._onnx.TensorProto.STRING
            made = self._onnx.helper.make_tensor(name, kind, array.shape, texts)
        else:
            array = array.astype(np.int64 if array.dtype.kind in "iu" else np.float64)
            made = self._onnx.numpy_helper.from_array(array, name)
        self._constants.append(made)
        return name

    def take(self, name: str, width: int, text: bool = False) -> str:
        """An input [rows, width] of numbers or texts."""
        self._inputs.append(self._describe(name, text, ["rows", width]))
        return name

    def give(self, name: str, value: str, width: int | None = None, text: bool = False) -> None:
        """Make a value an output, [rows] or [rows, width]."""
        self._nodes.append(self._onnx.helper.make_node("Identity", [value], [name]))
        shape: list[str | int] = ["rows"] if width is None else ["rows", width]
        self._outputs.append(self._describe(name, text, shape))

    def choose(self, condition: str, yes: str, no: str) -> str:
        """``yes`` where the condition holds, else ``no``."""
        return self.add("Where", condition, yes, no)

    def write(self, facts: dict[str, str], producer: str, version: str) -> bytes:
        """The file of the graph, checked.

        Args:
            facts: what stands beside the graph, as texts.
            producer: the name of the program that wrote it.
            version: of that program.
        """
        helper = self._onnx.helper
        graph = helper.make_graph(
            self._nodes, "predictor", self._inputs, self._outputs, self._constants
        )
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=FORM,
            producer_name=producer, producer_version=version,
        )  # fmt: skip
        helper.set_model_props(model, facts)
        self._onnx.checker.check_model(model, full_check=True)
        return model.SerializeToString(deterministic=True)

    def _name(self, word: str) -> str:
        self._count += 1
        return f"{word}_{self._count}"

    def _describe(self, name: str, text: bool, shape: list[str | int]) -> Any:
        kind = self._onnx.TensorProto.STRING if text else self._onnx.TensorProto.DOUBLE
        return self._onnx.helper.make_tensor_value_info(name, kind, shape)
