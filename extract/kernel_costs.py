"""The roofline cost of single kernels, as functions of a module, so that a saturation in a child process can be told about them.

A kernel does not know the program around it, so its data are taken to lie where all that it touches itself would fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from extract.device import Device, load, this_cpu
from extract.roofline import Shape, kernel_cost, warm_level
from leir.ir import Nest

KernelCost = Callable[[Nest, Mapping[str, Shape]], float]


def this_cpu_seconds(nest: Nest, shapes: Mapping[str, Shape]) -> float:
    """Seconds of one kernel on the machine that this process runs on."""
    return seconds(nest, shapes, _this_cpu())


def h200_seconds(nest: Nest, shapes: Mapping[str, Shape]) -> float:
    """Seconds of one kernel on an H200."""
    return seconds(nest, shapes, load("h200"))


FOR_DEVICE: Mapping[str, KernelCost] = {"cpu": this_cpu_seconds, "h200": h200_seconds}


def device_named(name: str) -> Device:
    """``cpu`` is the machine at hand; the others come from their files. Raises `extract.device.DeviceError`."""
    return _this_cpu() if name == "cpu" else load(name)


@cache
def _this_cpu() -> Device:
    return this_cpu()


def seconds(nest: Nest, shapes: Mapping[str, Shape], device: Device) -> float:
    """Seconds of one kernel whose data lie in the innermost memory that holds them all."""
    return kernel_cost(nest, shapes, device, warm_level((nest,), shapes, device)).seconds
