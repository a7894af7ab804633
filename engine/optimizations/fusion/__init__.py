"""Optimizations of the group ``fusion``, one file each, in the order they are applied."""

from engine.optimizations.fusion.add_norm import ADD_NORM
from engine.optimizations.fusion.attention import ATTENTION
from engine.optimizations.fusion.cross_entropy import CROSS_ENTROPY
from engine.optimizations.fusion.custom import CUSTOM
from engine.optimizations.fusion.gradient_accumulation import GRADIENT_ACCUMULATION
from engine.optimizations.fusion.matmul_all_reduce import MATMUL_ALL_REDUCE
from engine.optimizations.fusion.optimizer import OPTIMIZER
from engine.optimizations.fusion.rms_norm import RMS_NORM
from engine.optimizations.fusion.rope import ROPE
from engine.optimizations.fusion.softmax_dropout import SOFTMAX_DROPOUT
from engine.optimizations.fusion.swiglu import SWIGLU
from engine.optimizations.interface import Optimization

OPTIMIZATIONS: tuple[Optimization, ...] = (
    ATTENTION,
    CROSS_ENTROPY,
    RMS_NORM,
    ADD_NORM,
    SWIGLU,
    ROPE,
    SOFTMAX_DROPOUT,
    OPTIMIZER,
    GRADIENT_ACCUMULATION,
    MATMUL_ALL_REDUCE,
    CUSTOM,
)
