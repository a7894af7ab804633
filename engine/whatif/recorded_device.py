"""On which device a job was recorded."""

from dataclasses import dataclass

from engine.core.errors import MissingDataError
from engine.devices.catalogue import device_named
from engine.devices.spec import DeviceSpec
from engine.trace.job import Job
from engine.workloads.calibration.calibrate import capture_rows


@dataclass(frozen=True, slots=True)
class RecordedDevice:
    """A device and how it is known.

    Attributes:
        spec: Its figures.
        is_named: Whether the capture names it; else it is the nearest one by cores, memory rate and clock.
    """

    spec: DeviceSpec
    is_named: bool

    @property
    def assumption(self) -> str | None:
        """Says so where it is not named."""
        if self.is_named:
            return None
        return f"the device is taken to be a {self.spec.id}, the nearest by its kernels: the capture names none"


def recorded_device(job: Job) -> RecordedDevice | None:
    """Returns the device a job ran on, None where neither words nor kernels tell."""
    for entry in job.ranks:
        metadata = entry.trace.metadata
        simulated = metadata.extra.get("cannscope")
        own = simulated.get("device") if isinstance(simulated, dict) else None
        for text in (metadata.device, metadata.extra.get("soc_name"), own):
            device = device_named(text) if isinstance(text, str) else None
            if device is not None:
                return RecordedDevice(device, is_named=True)
    try:
        return RecordedDevice(capture_rows(job, job.path)[0], is_named=False)
    except MissingDataError:
        return None
