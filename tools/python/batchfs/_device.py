"""The names of devices."""

from __future__ import annotations

from ._errors import NotSupported


def device_of(device: str) -> str | None:
    """The GPU's name, or None for the host. Raises NotSupported."""
    if device in ("cpu", "host"):
        return None
    if device.split(":")[0] != "cuda":
        raise NotSupported(f"there is no device '{device}': it is cpu, cuda or cuda:N")
    return device
