import pytest
from PySide6.QtCore import Qt

from engine.analyses.summary import summarize
from engine.formats import open_job
from engine.formats.readers import built_in_readers
from profiler_gui.item_models.summary_tables import (
    candidate_table,
    collective_table,
    idle_table,
    link_table,
    module_table,
    operator_table,
    step_table,
)
from tests.support.windows import drawn_document

DESCENDING = Qt.SortOrder.DescendingOrder


def tables_of(summary, rank):
    one = summary.rank(rank)
    return {
        "operators": (operator_table(one.operators), len(one.operators)),
        "modules": (module_table(one.modules), len(one.modules)),
        "collectives": (
            collective_table(summary.communication.collectives[rank]),
            len(summary.communication.collectives[rank]),
        ),
        "links": (link_table(summary.communication.links[rank]), len(summary.communication.links[rank])),
        "idle": (idle_table(one.idle), len(one.idle)),
        "candidates": (candidate_table(one.fusion_candidates), len(one.fusion_candidates)),
        "steps": (step_table(one.steps), len(one.steps)),
    }


@pytest.fixture(scope="module")
def qwen(captures):
    return summarize(open_job([captures / "ascend" / "910b-qwen3-0.6b-pp2dp2"], built_in_readers()))


def test_tables_of_a_capture_without_communication_are_proper_item_models(qapp, qtmodeltester):
    summary = summarize(drawn_document("npu 2 | AAAA..BB |").job)
    for table, count in tables_of(summary, 0).values():
        assert table.rowCount() == count
        qtmodeltester.check(table)


def test_every_result_of_a_real_job_can_be_shown_sorted_and_copied(qapp, qwen):
    for table, count in tables_of(qwen, 0).values():
        assert table.rowCount() == count
        for column in range(table.columnCount()):
            table.sort(column, DESCENDING)
            for row in {0, count // 2, count - 1} & set(range(count)):
                cell = table.index(row, column)
                assert isinstance(cell.data(), str)
                assert isinstance(table.columns[column].raw(row), str)


def test_collectives_read_as_the_analyses_say(qapp, qwen):
    collectives = qwen.communication.collectives[0]
    table = collective_table(collectives)
    table.sort(table.columnCount() - 1)
    table.sort(-1)
    waits = next(number for number, column in enumerate(table.columns) if column.id == "wait")
    assert table.columns[waits].raw(1) == str(collectives[1].wait_ns)


def test_operators_sort_by_total(qapp, qwen):
    operators = qwen.rank(0).operators
    table = operator_table(operators)
    total = next(number for number, column in enumerate(table.columns) if column.id == "total")
    table.sort(total, DESCENDING)
    assert table.source_row(table.index(0, 0)) == max(range(len(operators)), key=lambda row: operators[row].total_ns)
