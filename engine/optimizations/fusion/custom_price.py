"""What a fused kernel of one's own takes: vector instructions against the matrix unit against memory."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.devices.spec import DeviceSpec, DType
from engine.optimizations.fusion.custom_file import CustomKernel
from engine.optimizations.fusion.kernel_shapes import KernelShape, product_size
from engine.optimizations.fusion.operator_prices import ASSUMED_DTYPE
from engine.runtime.cost import load_parameters
from engine.runtime.cost.parameters import DEFAULT_FAMILY

_LANE_BYTES = DType.FP32.size_bytes
"""Vector units compute in fp32: an instruction takes 256 bytes of operands per cycle and core."""


@dataclass(frozen=True, slots=True)
class CustomPrice:
    """Times of one call at the given share of the peak rates; the units work beside each other.

    Attributes:
        vector_ns: Its vector instructions.
        cube_ns: Its matrix products.
        memory_ns: Its bytes.
        fixed_ns: What any kernel takes.
    """

    vector_ns: float
    cube_ns: float
    memory_ns: float
    fixed_ns: float

    @property
    def total_ns(self) -> float:
        """The longest of the three, and what any kernel takes."""
        return self.fixed_ns + max(self.vector_ns, self.cube_ns, self.memory_ns)


def custom_price(
    kernel: CustomKernel, chain: Sequence[KernelShape], moved_bytes: float, device: DeviceSpec
) -> CustomPrice | None:
    """Returns what one call costs in place of a chain, None where neither file nor shapes give its size.

    * vector: instructions × elements × 4 bytes ÷ the vector units' rate. A product [m, k] × [k, n] computed with vector
      instructions has m·n·k elements: that is what makes such kernels slow.
    * cube: operations ÷ peak rate of the operands' type.
    * memory: bytes ÷ rate of the memory, or of the cache where they fit in it.

    Args:
        kernel: The kernel.
        chain: The kernels it replaces.
        moved_bytes: First input and last output of the chain, 0 where unknown.
        device: Where it runs.
    """
    products = [size for item in chain if (size := product_size(item)) is not None]
    volume = float(sum(batch * rows * summed * columns for batch, rows, summed, columns in products))
    single = float(max((item.elements for item in chain if product_size(item) is None), default=0))
    elements = kernel.elements
    if elements is None:
        elements = single + (volume if kernel.products_on_vector else 0.0)
    flops = kernel.flops
    if flops is None:
        flops = 0.0 if kernel.products_on_vector else 2 * volume
    moved = moved_bytes if kernel.bytes is None else kernel.bytes
    if (kernel.instructions and not elements) or (not elements and not flops and not moved):
        return None
    dtype = next((item.dtype for item in chain if item.dtype is not None), ASSUMED_DTYPE)
    share = kernel.efficiency_ratio * 1e-9
    memory_rate = device.hbm_bytes_per_s if moved > device.l2_bytes else device.l2_read_bytes_per_s
    return CustomPrice(
        vector_ns=len(kernel.instructions) * elements * _LANE_BYTES / (device.vector_bytes_per_s * share),
        cube_ns=flops / (device.cube_flop_per_s(dtype) * share),
        memory_ns=moved / (memory_rate * share),
        fixed_ns=load_parameters().families[DEFAULT_FAMILY].fixed_ns,
    )
