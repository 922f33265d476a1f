"""The backend `onnx`: an ONNX file, run by ONNX Runtime on the leased cores.

The runtime is imported inside functions alone; `farm.graphs` reads a file without it.
"""
