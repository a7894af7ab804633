"""The device memory of one class of ranks over a whole run: its allocator, what it holds, what it cost."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.core.arrays import Int64Array
from engine.graph.task_graph import BufferTag
from engine.runtime.addresses.from_log import ServedLog
from engine.runtime.allocators.interface import Allocator, AllocatorRun, DriverAction, RequestKind, RequestLog
from engine.workloads.driver_costs import CALL_NAMES, DRIVER_CALLS, SYNCHRONIZING, DriverCosts
from engine.workloads.executed import Stall
from engine.workloads.items import Item
from engine.workloads.kept_addresses import KeptAddresses, kept_addresses
from engine.workloads.memory_plan import (
    ALLOCATE,
    MemoryPlan,
    PlacedRequests,
    persistent_requests,
    program_requests,
)
from engine.workloads.migrations import with_migrations
from engine.workloads.scenario import LongLived


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """What memory did during one step.

    Attributes:
        peak_allocated_bytes: Largest sum of blocks.
        peak_reserved_bytes: Largest sum of segments or mapped pages.
        end_allocated_bytes: After the step: what outlives it.
        end_reserved_bytes: After the step.
        stranded_bytes: At the worst miss of the step, −1 where there was none.
        retries: Allocations that had to empty the cache first.
        driver_calls: Segments and pages taken and given back.
        caught: Out-of-memory errors the training loop caught.
        stall_ns: Host time of all that.
        migrated_bytes: Moved between HBM and DDR, both ways.
        compacted_bytes: Of live blocks moved inside HBM, which only a simulator can do.
        failed_bytes: Size of the request that ended the run, 0 where none did.
    """

    peak_allocated_bytes: int
    peak_reserved_bytes: int
    end_allocated_bytes: int
    end_reserved_bytes: int
    stranded_bytes: int
    retries: int
    driver_calls: int
    caught: int
    stall_ns: int
    migrated_bytes: int
    compacted_bytes: int
    failed_bytes: int


@dataclass(eq=False)
class ServedStretch:
    """Requests of a stretch with what the allocator answered, kept for profiled steps.

    Attributes:
        placed: The requests.
        run: The answers.
    """

    placed: PlacedRequests
    run: AllocatorRun


@dataclass(eq=False)
class StretchResult:
    """How far a stretch of a program came.

    Attributes:
        stalls: Item index → what memory cost inside it.
        failed_item: Item whose request failed, −1 where all were served.
        failed_operator: Operator of that item's block.
        served: The requests and answers.
    """

    stalls: dict[int, list[Stall]]
    failed_item: int
    failed_operator: int
    served: ServedStretch


@dataclass(eq=False)
class JobMemory:
    """Memory of one class of ranks while a run goes on.

    Attributes:
        allocator: The policy with its state.
        plan: Ids of tensors.
        costs: Of driver calls.
        born: Tensors that outlive their step.
        generator: Draws them.
        kept: What the allocator was asked from ``keep_addresses`` to ``keep_no_more``; None before, and for policies
            that have no map.
    """

    allocator: Allocator
    plan: MemoryPlan
    costs: DriverCosts
    born: LongLived
    generator: np.random.Generator
    kept: KeptAddresses | None = None
    _deaths: dict[int, list[int]] = field(default_factory=dict)
    _next_id: int = 0
    _free_ids: list[int] = field(default_factory=list)
    _runs: list[AllocatorRun] = field(default_factory=list)
    _caught: int = 0
    _keeps: bool = False
    _failed_bytes: int = 0
    _address_of: dict[int, int] = field(default_factory=dict)

    def load(self, sizes: Int64Array) -> bool:
        """Allocates what lives as long as the job; returns whether it fitted."""
        self._next_id = self.plan.persistent_count + self.plan.step_id_count
        run = self._ask(persistent_requests(sizes))
        self._address_of = dict(enumerate(run.address.tolist()))
        return not _ran_out(run)

    def serve(
        self, items: Sequence[Item], length_of: Sequence[int], sequences: int, step: int, births: int
    ) -> StretchResult:
        """Serves a stretch of a program with ``births`` long-lived tensors born somewhere in it.

        Where memory runs out, what the stretch held is freed again, as leaving its Python frames does.
        """
        placed = program_requests(self.plan, items, length_of, sequences)
        placed = self._with_long_lived(placed, step, births)
        run = self._ask(placed.log)
        run = self._runs[-1] = with_migrations(run, placed.log, placed.moves, self._address_of)
        result = StretchResult(_stalls(run, placed, self.costs), -1, 0, ServedStretch(placed, run))
        if _ran_out(run):
            last = run.served - 1
            result.failed_item, result.failed_operator = int(placed.item[last]), int(placed.operator[last])
            self._failed_bytes = int(placed.log.size_bytes[last])
            self._unwind(placed.log, run.served)
        return result

    def catch(self) -> int:
        """Empties the cache after a caught error; returns its host time, ns."""
        self._caught += 1
        self._failed_bytes = 0
        run = self._ask(_requests([RequestKind.EMPTY_CACHE], [-1], [0], [0]))
        return int(self.costs.of(run.driver).sum()) + self.costs.catch_ns

    def keep_addresses(self) -> None:
        """Keeps everything the allocator is asked from now on."""
        self.kept = kept_addresses(self.allocator)
        self._keeps = self.kept is not None

    def keep_no_more(self) -> None:
        """Ends what ``keep_addresses`` began; what was kept stays."""
        self._keeps = False

    def _ask(self, log: RequestLog) -> AllocatorRun:
        """Returns what the allocator answers, up to the first request it cannot serve."""
        run = self.allocator.run(log, stop_when_out=True)
        self._runs.append(run)
        if self.kept is not None and self._keeps:
            self.kept.served.append(ServedLog(log, run))
        return run

    def synchronize(self) -> tuple[tuple[str, int], ...]:
        """Tells the allocator that the program has waited for the device; returns the driver calls that led to."""
        run = self.allocator.run(_requests([RequestKind.SYNCHRONIZE], [-1], [0], [0]))
        self._runs.append(run)
        return self._calls(run)

    def release(self) -> tuple[tuple[str, int], ...]:
        """Empties the cache; returns the driver calls that took."""
        return self._calls(self._ask(_requests([RequestKind.EMPTY_CACHE], [-1], [0], [0])))

    def restart(self, allocator: Allocator, sizes: Int64Array) -> bool:
        """Begins anew with a fresh allocator: long-lived tensors are gone, the rest is loaded; returns if it fitted."""
        self.allocator = allocator
        self._deaths.clear()
        self._free_ids.clear()
        return self.load(sizes)

    def _calls(self, run: AllocatorRun) -> tuple[tuple[str, int], ...]:
        names = [CALL_NAMES.get(DriverAction(action), "") for action in run.driver.action.tolist()]
        costs = self.costs.of(run.driver).tolist()
        return tuple((name, cost) for name, cost in zip(names, costs, strict=True) if cost)

    def births(self) -> int:
        """Returns how many long-lived tensors are born in a step."""
        return int(self.generator.poisson(self.born.per_step)) if self.born.per_step else 0

    def bury(self, step: int) -> None:
        """Frees the long-lived tensors that die at a step."""
        dying = self._deaths.pop(step, [])
        if dying:
            kinds = [RequestKind.FREE] * len(dying)
            self._ask(_requests(kinds, dying, [0] * len(dying), [0] * len(dying)))
            self._free_ids += dying

    def record(self) -> MemoryRecord:
        """Returns what happened since the last record."""
        runs, self._runs = self._runs, []
        actions = np.concatenate([run.driver.action for run in runs] or [np.empty(0, np.int64)])
        stranded = np.concatenate([run.driver.stranded_bytes for run in runs] or [np.empty(0, np.int64)])
        state = self.allocator.state
        record = MemoryRecord(
            peak_allocated_bytes=max((int(run.allocated_bytes.max(initial=0)) for run in runs), default=0),
            peak_reserved_bytes=max((int(run.reserved_bytes.max(initial=0)) for run in runs), default=0),
            end_allocated_bytes=state.allocated_bytes,
            end_reserved_bytes=state.reserved_bytes,
            stranded_bytes=int(stranded.max(initial=-1)),
            retries=int((actions == DriverAction.RETRY).sum()),
            driver_calls=int(np.isin(actions, DRIVER_CALLS).sum()),
            caught=self._caught,
            stall_ns=sum(int(self.costs.of(run.driver).sum()) for run in runs) + self._caught * self.costs.catch_ns,
            migrated_bytes=_moved_bytes(runs, DriverAction.MIGRATE),
            compacted_bytes=_moved_bytes(runs, DriverAction.COMPACT),
            failed_bytes=self._failed_bytes,
        )
        self._caught = 0
        return record

    def _with_long_lived(self, placed: PlacedRequests, step: int, births: int) -> PlacedRequests:
        if not births or not len(placed.log):
            return placed
        where = np.sort(self.generator.integers(0, len(placed.log), births))
        sizes = self.generator.integers(self.born.minimum_bytes, self.born.maximum_bytes + 1, births)
        ids = np.array([self._new_long_lived(step) for _ in range(births)], np.int64)
        log = placed.log
        merged = RequestLog(
            kind=np.insert(log.kind, where, ALLOCATE),
            block=np.insert(log.block, where, ids),
            size_bytes=np.insert(log.size_bytes, where, sizes),
            stream=np.insert(log.stream, where, 0),
            tag=np.insert(log.tag, where, int(BufferTag.LONG_LIVED)),
        )
        item = np.insert(placed.item, where, placed.item[where])
        operator = np.insert(placed.operator, where, placed.operator[where])
        return PlacedRequests(merged, item, operator, np.insert(placed.moves, where, False))

    def _new_long_lived(self, step: int) -> int:
        if self._free_ids:
            number = self._free_ids.pop()
        else:
            number, self._next_id = self._next_id, self._next_id + 1
        if self.born.lifetime_steps:
            life = 1 + int(self.generator.exponential(self.born.lifetime_steps))
            self._deaths.setdefault(step + life, []).append(number)
        return number

    def _unwind(self, log: RequestLog, served: int) -> None:
        """Frees what the failed stretch holds, as leaving its Python frames does; what outlives steps stays."""
        kind, block, tag = log.kind[:served], log.block[:served], log.tag[:served]
        mine = tag != BufferTag.LONG_LIVED
        numbers, place = np.unique(block[mine], return_inverse=True)
        held = np.bincount(place, np.where(kind[mine] == ALLOCATE, 1, -1), len(numbers))
        left = numbers[held > 0]
        kinds = [RequestKind.FREE] * len(left)
        zeros = [0] * len(left)
        self._ask(_requests(kinds, left.tolist(), zeros, zeros))


def _requests(kinds: Sequence[int], blocks: Sequence[int], sizes: Sequence[int], tags: Sequence[int]) -> RequestLog:
    columns = [np.array(values, np.int64) for values in (kinds, blocks, sizes, tags)]
    return RequestLog(columns[0], columns[1], columns[2], np.zeros_like(columns[0]), columns[3])


def _moved_bytes(runs: Sequence[AllocatorRun], action: DriverAction) -> int:
    return sum(int(run.driver.size_bytes[run.driver.action == action].sum()) for run in runs)


def _ran_out(run: AllocatorRun) -> bool:
    actions = run.driver.action
    return bool(len(actions)) and int(actions[-1]) == DriverAction.OUT_OF_MEMORY


def _stalls(run: AllocatorRun, placed: PlacedRequests, costs: DriverCosts) -> dict[int, list[Stall]]:
    """Returns the driver's calls as stalls of the operators that caused them, one for all calls of an operator."""
    waits = np.isin(run.driver.action, SYNCHRONIZING)
    request = run.driver.request[waits]
    cost = costs.of(run.driver)[waits]
    actions = run.driver.action[waits]
    stalls: dict[int, list[Stall]] = {}
    # A few dozen driver calls per step at most.
    for number in np.unique(request).tolist():
        own = request == number
        names = [CALL_NAMES[DriverAction(action)] for action in actions[own].tolist()]
        calls = tuple(zip(names, cost[own].tolist(), strict=True))
        item, operator = int(placed.item[number]), int(placed.operator[number])
        stalls.setdefault(item, []).append(Stall(operator, int(cost[own].sum()), True, calls))
    return stalls
