"""What is known of one collective, one link and one late rank: the results of the communication analysis."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Arrival:
    """When one member of a collective arrived and left, in job time."""

    rank: int
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Collective:
    """One communication operator on one rank.

    Attributes:
        name: As the capture names it.
        group: Group hash or name; "" where unknown.
        group_name: The framework's word for the group (``"dp_cp"``), "" where unknown.
        event: Event row on this rank's timeline, or −1.
        start_ns: Trace time of this rank.
        elapsed_ns: Start to end on this rank.
        bytes: Payload, or None.
        wait_ns: Until the last member arrived; None while members are missing ("unsplit").
        transfer_ns: elapsed − wait; None while unsplit.
        exposed_ns: Part of elapsed not covered by computing on this rank (all of it where the capture lists no
            computing).
        exposed_wait_ns: Part of the waiting not covered by computing; None while unsplit.
        hideable_ns: Exposed transfer that could at most meet computing of the same step; None while unsplit. Captures
            do not record which computing is independent, so this is an upper bound: see ``hiding.with_hideable``.
        late_rank: The member that arrived last; None while unsplit or where nobody was late.
        members: Arrivals of all members, the last one last; () while unsplit.
        missing_ranks: Members (possible ones where the group is not certain) whose captures are not open; () where
            nothing is known of the members.
        vendor_transit_ns: The profiler's own split beside ours; None where absent.
        vendor_wait_ns: See above.
        vendor_idle_ns: See above.
        bandwidth_bytes_per_s: bytes ÷ transfer (÷ vendor transit while unsplit); None where unknown.
        step: Profiler step, or None.
    """

    name: str
    group: str
    group_name: str
    event: int
    start_ns: int
    elapsed_ns: int
    bytes: int | None
    wait_ns: int | None
    transfer_ns: int | None
    exposed_ns: int
    exposed_wait_ns: int | None
    hideable_ns: int | None
    late_rank: int | None
    members: tuple[Arrival, ...]
    missing_ranks: tuple[int, ...]
    vendor_transit_ns: int | None
    vendor_wait_ns: int | None
    vendor_idle_ns: int | None
    bandwidth_bytes_per_s: float | None
    step: int | None


@dataclass(frozen=True, slots=True)
class SlowRank:
    """A rank the others wait for, and what it did meanwhile.

    Attributes:
        rank: Global rank.
        cause: What it did while others waited for it, as a phrase (``"computing 92 %, idle 8 %"``).
        cost_ns: How long at least one other rank waited for it (a union over the others, in job time).
    """

    rank: int
    cause: str
    cost_ns: int


@dataclass(frozen=True, slots=True)
class LinkStatistic:
    """All transfers of one rank over one kind of link.

    Attributes:
        link: ``"HCCS"``, ``"RDMA"``, … On Ascend ``"SDMA"`` is the sum of HCCS, PCIE and SIO and must not be added.
        bytes: Moved over all collectives.
        transit_ns: Sum of the transfers' times.
        large_packet_ratio: Share of transfers above the vendor's threshold, weighted by bytes; None where absent.
    """

    link: str
    bytes: int
    transit_ns: int
    large_packet_ratio: float | None
