import json

import msgspec
import pytest

from workers import backends
from workers.backends.torch import usercode

# Loads a bundle's reference as the child does, uses the step twice, then our own code again.
_MEASURE = """
import sys, time, json, msgspec
from workers import backends
from workers.record import Assignment
import farm.schema

assignment = msgspec.json.decode(sys.argv[1].encode(), type=Assignment)
step = backends.load(assignment, clock=time.perf_counter_ns).step
output = step()
flags = step.check_output(output)
again = step()
facts = step.facts()
print(json.dumps([
    float(output.sum()), float(again.sum()), flags, step.inputs_mutated(),
    facts.kinds["model"], backends.explain(MemoryError()).kind,
    len(farm.schema.encode(assignment.job)) > 100,
]))
"""


@pytest.fixture
def measured(assign, bundle, child):
    """Measure a bundle of these files in a child; return what it printed."""

    def run(files, ref="model.py:step", **more):
        assignment = assign(ref, bundle=bundle(files), **more)
        return json.loads(child(_MEASURE, msgspec.json.encode(assignment).decode()))

    return run


@pytest.mark.parametrize(
    "files",
    [
        {"workers/__init__.py": "", "workers/net.py": "def f(x):\n    return x * 0 + 3\n"},
        {"workers/net.py": "def f(x):\n    return x * 0 + 3\n"},
        {"workers.py": "class net:\n    f = staticmethod(lambda x: x * 0 + 3)\n"},
    ],
    ids=["package", "folder without __init__", "file"],
)
@pytest.mark.parametrize("when", ["top", "lazily"])
def test_a_folder_called_workers_beside_the_model_works(measured, files, when):
    """The user's `workers` is found at the top of the file and in the middle of a step."""
    imported = "from workers import net\n"
    model = {
        "top": f"import numpy\n{imported}def step(x):\n    return net.f(x)\n",
        "lazily": f"import numpy\ndef step(x):\n    {imported}    return net.f(x)\n",
    }[when]

    found = measured({"model.py": model, **files})

    assert [24.0, 24.0, [], False, "step", "host_oom", True] == found


def test_folders_called_farm_and_configs_work_as_well(measured):
    """Both names are the user's, with all their modules."""
    files = {
        "farm/__init__.py": "from farm.schema import HEIGHT\n",
        "farm/schema.py": "HEIGHT = 2\n",
        "configs/__init__.py": "WIDTH = 5\n",
        "model.py": (
            "import numpy\nimport farm\n"
            "def step(x):\n    from configs import WIDTH\n"
            "    import farm.schema\n"
            "    return x * 0 + WIDTH * farm.schema.HEIGHT\n"
        ),
    }

    found = measured(files)

    assert [80.0, 80.0, [], False, "step", "host_oom", True] == found


def test_a_module_of_the_users_workers_can_be_the_model_itself(measured):
    """`workers.net:build` of a bundle is the user's, not ours."""
    net = "import torch\ndef build():\n    return torch.nn.Identity()\n"
    files = {"workers/__init__.py": "", "workers/net.py": net}

    found = measured(files, ref="workers.net:build")

    assert "module" == found[4]


def test_a_bundle_without_these_names_leaves_ours_in_place(child, bundle):
    """Nothing is handed over without need."""
    folder = bundle({"model.py": "def step(x):\n    return x\n"})

    said = child(
        "import sys\nfrom workers.backends.torch import usercode\n"
        "usercode.fetch('model.py:step', bundle=sys.argv[1])\n"
        "print(sys.modules['workers.backends.torch.usercode'] is usercode)",
        str(folder),
    )

    assert "True\n" == said


def test_a_file_finds_its_neighbours_and_the_root_of_the_bundle(measured):
    """Sibling files and folders of the root are both importable, as if started by hand."""
    files = {
        "nets/model.py": (
            "import numpy\nimport sibling\nfrom shared.scale import TWO\n"
            "def step(x):\n    return sibling.one(x) * TWO\n"
        ),
        "nets/sibling.py": "def one(x):\n    return x * 0 + 1\n",
        "shared/scale.py": "TWO = 2\n",
    }

    assert 16.0 == measured(files, ref="nets/model.py:step")[0]


def test_a_file_in_a_package_may_import_relatively(measured):
    """A model inside a package is imported by its dotted name."""
    files = {
        "nets/__init__.py": "",
        "nets/parts.py": "ONE = 1\n",
        "nets/model.py": (
            "import numpy\nfrom .parts import ONE\ndef step(x):\n    return x * 0 + ONE\n"
        ),
    }

    assert 8.0 == measured(files, ref="nets/model.py:step")[0]


@pytest.mark.parametrize("name", ["statistics.py", "my-net.py", "numpy.random.py"])
def test_a_file_may_have_any_name(measured, name):
    """A name that Python or torch uses, or that is no name at all, still loads the file."""
    assert (
        8.0
        == measured({name: "import numpy\ndef step(x):\n    return x * 0 + 1\n"}, f"{name}:step")[0]
    )


def test_a_bundle_is_left_as_it_was_staged(measured, tmp_path):
    """Importing writes no compiled files into a folder that other children share."""
    measured({"model.py": "import numpy\nimport part\ndef step(x):\n    return x\n", "part.py": ""})

    found = sorted(path.name for path in (tmp_path / "bundle").rglob("*"))

    assert ["model.py", "part.py"] == found


@pytest.mark.parametrize("ref", ["other.py:step", "../outside.py:step"])
def test_a_file_outside_the_bundle_is_not_loaded(bundle, tmp_path, ref):
    """Neither a missing file nor one above the root is a model."""
    (tmp_path / "outside.py").write_text("step = 1\n")
    folder = bundle({"model.py": ""})

    with pytest.raises(backends.LoadFailed, match="the bundle has no file"):
        usercode.fetch(ref, bundle=str(folder))


def test_a_name_that_is_not_in_the_file_is_an_error_of_the_model(assign, load, bundle):
    """The message names the file and the name."""
    folder = bundle({"model.py": "x = 1\n"})

    with pytest.raises(backends.LoadFailed, match=r"model\.py has no 'build'") as caught:
        load(assign("model.py:build", bundle=folder))

    assert "model_error" == caught.value.kind


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import numpy as np\n", "numpy"),
        ("import torch\nimport numpy\n", "torch"),
        ("import numpy\ndef f():\n    import torch.nn\n", "torch"),
        ("import numpy\nfrom torchvision import ops\n", "torch"),
        ("import math\n", "torch"),
        ("from . import numpy\n", "torch"),
        ('import numpy\nx = "\\d"\n', "numpy"),
    ],
)
def test_a_step_works_on_arrays_only_where_its_code_says_so(bundle, text, expected):
    """Numpy without torch means arrays; torch anywhere, or neither, means tensors."""
    folder = bundle({"model.py": text})

    assert expected == usercode.works_on("model.py:f", bundle=str(folder))


def test_torch_in_a_neighbour_counts(bundle):
    """A step that hands its input to a torch file of the bundle works on tensors."""
    folder = bundle({"model.py": "import numpy, net\n", "net.py": "import torch\n"})

    assert "torch" == usercode.works_on("model.py:f", bundle=str(folder))


def test_an_installed_module_is_read_and_not_run(child):
    """What a module works on is known before it is imported."""
    said = child(
        "import sys\nfrom workers.backends.torch import usercode\n"
        "print(usercode.works_on('workers.models.placeholder:demo_depth', bundle=''),\n"
        "      usercode.works_on('workers.models.mlp:build', bundle=''),\n"
        "      'workers.models.mlp' in sys.modules)"
    )

    assert "numpy torch False\n" == said


def test_a_file_is_run_once_whatever_is_taken_from_it(bundle, load):
    """A model and its data may share one, and with it their classes."""
    text = "made = []\ndef build(): return made\ndef batches(): return made\n"
    for name in ("once.py", "json.py", "two words.py"):
        root = str(bundle({name: text}))

        found = [usercode.fetch(f"{name}:{each}", bundle=root) for each in ("build", "batches")]

        assert found[0]() is found[1]()
