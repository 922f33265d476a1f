"""Bad requests of the verbs that measure a training or an inference.

Each names the CPU: what no machine can do is refused on every one, but not what this one lacks.
"""

from typing import Final

_RUN: Final = "profile run --device cpu"
_INFER: Final = "profile infer --device cpu"

CAPTURES: Final[dict[str, list[tuple[str, int]]]] = {
    "captures": [
        # the words
        ("profile run", 2),
        (_RUN, 2),
        (f"{_RUN} weights=x.pt", 2),
        (f"{_RUN} synthetic weights=x.pt", 2),
        (f"{_RUN} synthetic amp=false", 2),
        (f"{_INFER} weights=x.pt", 2),
        (f"{_INFER} wieghts=x.pt", 2),
        (f"{_INFER} x.npz max_det=7", 2),
        (f"{_INFER} zzz=1", 2),
        (f"{_INFER} weights={'x' * 300}.pt", 2),
        (f"{_INFER} x.npz y.npz", 2),
        (f"{_INFER} --steps 5", 2),
        (f"{_RUN} synthetic --runs 5", 2),
        (f"{_RUN} synthetic --no-trace", 2),
        # the data
        (f"{_RUN} ''", 2),
        (f"{_RUN} sinthetic", 2),
        (f"{_RUN} synthetic-0", 2),
        (f"{_RUN} home", 2),
        (f"{_RUN} missing.yaml", 2),
        (f"{_RUN} sweep.yaml", 2),
        (f"{_RUN} model.py:batches", 2),
        (f"{_RUN} https://host/coco.zip", 2),
        # the images
        (f"{_INFER} ''", 2),
        (f"{_INFER} missing.png", 2),
        (f"{_INFER} file.txt", 2),
        (f"{_INFER} home", 2),
        (f"{_INFER} x.npz --weights lstm", 2),
        # the model
        (f"{_INFER} --weights x.pt", 2),
        (f"{_INFER} --weights LibreYOLO9t.pt", 2),
        (f"{_INFER} --weights missing.onnx", 2),
        (f"{_INFER} --weights broken.onnx", 2),
        (f"{_INFER} --weights missing.py:build", 2),
        (f"{_INFER} --weights model.py:biuld", 2),
        (f"{_INFER} --weights detektor-t", 2),
        (f"{_INFER} --weights https://host/x.pt", 2),
        (f"{_INFER} --size huge", 2),
        (f"{_RUN} synthetic --size ''", 2),
        (f"{_RUN} synthetic --weights placeholder:demo_depth", 2),
        # the numbers
        (f"{_RUN} synthetic --batch -1", 2),
        (f"{_RUN} synthetic --batch -2", 2),
        (f"{_RUN} synthetic --batch 0", 2),
        (f"{_RUN} synthetic --steps 0", 2),
        (f"{_RUN} synthetic --warmup -1", 2),
        (f"{_RUN} synthetic --workers many", 2),
        (f"{_INFER} --batch -1", 2),
        (f"{_INFER} --runs 0", 2),
        (f"{_INFER} --imgsz 7", 2),
        (f"{_INFER} --conf 1.5", 2),
        (f"{_INFER} --iou -0.1", 2),
        (f"{_INFER} --max-det 0", 2),
        (f"{_INFER} --repeat 0", 2),
        (f"{_INFER} --half", 2),
        (f"{_INFER} --amp-dtype fp16", 2),
        # where
        ("profile infer --device tpu", 2),
        ("profile run synthetic --device all", 2),
        (f"{_INFER} --project file.txt", 2),
        (f"{_INFER} --project /sys/farm", 2),
    ],
}
