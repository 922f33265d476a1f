"""The door to the driver's library: each call a value, or the reason why there is none.

`pynvml` here is the single file of the distribution nvidia-ml-py. Names come and go between
drivers: a reading names the newest first. Only the probe imports this.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from workers.gpu.record import Reading

# Codes of nvmlReturn_t (nvml.h). 18: library and kernel module are of different versions.
_REASONS: Final = {
    3: "not_supported",
    4: "no_permission",
    9: "driver_not_loaded",
    10: "timed_out",
    12: "library_missing",
    13: "symbol_missing",
    15: "gpu_lost",
    16: "reset_required",
}
ABSENT: Final = (3, 13)
LOST, RESET_REQUIRED, MISMATCH = 15, 16, 18
_UNAVAILABLE: Final = 2**64 - 1  # NVML_VALUE_NOT_AVAILABLE
# The union of a field's value, by its nvmlValueType_t.
_MEMBERS: Final = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")


class Library:
    """The loaded library; `close` gives it back. why: reason and code of a load that failed."""

    def __init__(self) -> None:
        self.why: Reading | None = None
        try:
            import pynvml

            self._names = pynvml
            pynvml.nvmlInit()
        except ImportError:
            self.why = Reading(reason="library_missing: nvidia-ml-py is not installed")
        except Exception as error:
            self.why = reading_of(error)

    def close(self) -> None:
        """Give the library back; a driver without persistence may then switch the GPU off."""
        if self.why is None:
            self.read(("nvmlShutdown",))

    def read(self, names: Sequence[str], *words: Any) -> Reading:
        """Return what the first of these functions says that the library has.

        A later name is asked only where an earlier one is not there.
        """
        if self.why is not None:
            return self.why
        found = Reading(reason="symbol_missing")
        for name in names:
            function: Callable[..., Any] | None = getattr(self._names, name, None)
            if function is None:
                continue
            try:
                return _known(function(*words))
            except Exception as error:  # the binding raises what its library and ctypes do
                found = reading_of(error)
                if found.code != 13:
                    return found
        return found

    def fields(self, handle: Any, ids: Sequence[int]) -> dict[int, Reading]:
        """Return field values by their id, in one call; each of them may fail by itself."""
        whole = self.read(("nvmlDeviceGetFieldValues",), handle, list(ids))
        if whole.value is None:
            return dict.fromkeys(ids, whole)
        found = {}
        for wanted, each in zip(ids, whole.value, strict=True):
            if each.nvmlReturn:
                found[wanted] = _failed(int(each.nvmlReturn), "")
            else:
                found[wanted] = Reading(getattr(each.value, _MEMBERS[each.valueType]))
        return found

    def constant(self, name: str) -> int | None:
        """Return a constant of the binding, None where it is too old to know it."""
        found = getattr(self._names, name, None) if self.why is None else None
        return found if isinstance(found, int) else None


def reading_of(error: Exception) -> Reading:
    """Return the reason of a failed call; what is no error of NVML is one of ours to look at."""
    code = getattr(error, "value", None)
    if isinstance(code, int):
        return _failed(code, str(error))
    return Reading(reason=f"error: {type(error).__name__}: {str(error)[:200]}")


def _failed(code: int, said: str) -> Reading:
    return Reading(reason=_REASONS.get(code, f"error: {said or 'NVML'} ({code})"), code=code)


def _known(value: Any) -> Reading:
    """Return a value as plain Python; what says that it is not available is none."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if value == _UNAVAILABLE or value == "":
        return Reading(reason="not_supported")
    return Reading(value)
