import pytest
from PySide6.QtCore import QModelIndex, Qt

from engine.analyses.modules import ModuleTime
from profiler_gui.item_models.module_tree import (
    MODULE,
    PHASE,
    SOURCE,
    ModuleTreeModel,
    module_first,
    module_tree,
    phase_first,
    source_first,
    title_of,
)
from profiler_gui.item_models.table_model import RAW_ROLE, SORT_ROLE

MODULES = (
    ModuleTime("Net", "forward", "net.py(3): forward", 1, 10, inferred=False),
    ModuleTime("Net/Linear", "forward", "", 2, 30, inferred=False),
    ModuleTime("Net/Linear", "backward", "", 3, 60, inferred=False),
    ModuleTime("layer 1", "", "", 4, 100, inferred=True),
)


@pytest.mark.parametrize("path_of", [phase_first, module_first, source_first])
def test_no_device_time_is_lost_or_counted_twice(path_of):
    root = module_tree(MODULES, path_of)
    assert root.total_ns == 200
    assert root.count == 10

    def check(node):
        assert node.total_ns == node.own_ns + sum(child.total_ns for child in node.children)
        for child in node.children:
            check(child)

    check(root)


def test_a_module_holds_its_own_time_and_that_of_what_is_in_it():
    root = module_tree(MODULES, phase_first)
    forward = next(child for child in root.children if child.title == "forward")
    (net,) = forward.children
    assert (net.kind, net.total_ns, net.own_ns) == (MODULE, 40, 0)
    assert [(child.kind, child.total_ns) for child in net.children] == [(MODULE, 30), (SOURCE, 10)]


def test_children_stand_with_the_largest_first_and_unknown_phases_say_so():
    root = module_tree(MODULES, phase_first)
    assert [title_of(child) for child in root.children] == ["(phase unknown)", "backward", "forward"]
    assert [child.kind for child in root.children] == [PHASE] * 3
    assert [child.inferred for child in root.children] == [True, False, False]


def test_the_model_is_sound_in_every_order(qtmodeltester, qapp):
    for path_of in (phase_first, module_first, source_first):
        model = ModuleTreeModel(module_tree(MODULES, path_of))
        qtmodeltester.check(model)


def test_an_empty_tree_is_a_sound_model(qtmodeltester, qapp):
    model = ModuleTreeModel(module_tree((), phase_first))
    qtmodeltester.check(model)
    assert model.rowCount() == 0


def test_cells_read_sort_and_copy(qapp):
    model = ModuleTreeModel(module_tree(MODULES, phase_first))
    first = model.index(0, 0, QModelIndex())
    texts = [model.index(0, column, QModelIndex()).data() for column in range(model.columnCount())]
    assert texts == ["(phase unknown)", "100 ns", "50 %", "–", "4", "inferred"]
    assert model.index(0, 1, QModelIndex()).data(SORT_ROLE) == 100
    assert model.index(0, 2, QModelIndex()).data(SORT_ROLE) == 0.5
    assert model.index(0, 1, QModelIndex()).data(RAW_ROLE) == "100"
    assert first.data(Qt.ItemDataRole.FontRole).italic()
    assert model.headerData(1, Qt.Orientation.Horizontal) == "Total"
