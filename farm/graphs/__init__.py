"""ONNX files, as far as one can tell without running them: inputs, nodes, weights, precision.

Everything is read from the bytes of the file, so a sweep is planned on machines that could not run
the model, and no library is needed.
"""

from farm.graphs.graph import Graph, Node, Port, Weight
from farm.graphs.inputs import BATCH, check, spec
from farm.graphs.parameters import parameters, precision, word
from farm.graphs.reading import SUFFIX, files, is_graph, read

__all__ = [
    "BATCH",
    "SUFFIX",
    "Graph",
    "Node",
    "Port",
    "Weight",
    "check",
    "files",
    "is_graph",
    "parameters",
    "precision",
    "read",
    "spec",
    "word",
]
