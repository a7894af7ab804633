import pytest
from PySide6.QtCore import QPoint, Qt

from profiler_gui.toolkit.bars import Bar, Part, StackedBars
from profiler_gui.toolkit.columns import ColumnRow, StackedColumns
from profiler_gui.toolkit.fills import COMPUTING, IDLE, UNSPLIT, Legend, LegendEntry, text_colour_on
from profiler_gui.toolkit.theme import DARK, LIGHT, Theme, ThemeMode


@pytest.fixture
def theme(qapp):
    theme = Theme(qapp)
    theme.apply(ThemeMode.LIGHT)
    return theme


def bar(*values, title="step"):
    fills = (COMPUTING, UNSPLIT, IDLE)
    parts = tuple(
        Part(f"p{index}", value, f"part {index}: {value}", (f"long text of part {index}", f"{value}"), fills[index % 3])
        for index, value in enumerate(values)
    )
    return Bar(title, parts, f"{sum(values)}")


@pytest.fixture
def bars(theme, qtbot):
    bars = StackedBars(theme, "Bars")
    qtbot.addWidget(bars)
    bars.set_bars((bar(10, 20, 30), bar(5, 5)))
    bars.resize(600, bars.sizeHint().height())
    return bars


@pytest.fixture
def columns(theme, qtbot):
    columns = StackedColumns(theme, "Columns")
    qtbot.addWidget(columns)
    columns.resize(400, 100)
    return columns


def test_bars_share_one_scale(bars):
    first, second = bars.part_rect(0, 0), bars.part_rect(1, 0)
    assert first.left() == second.left()
    assert first.width() == pytest.approx(2 * second.width())
    assert bars.part_rect(0, 2).right() <= bars.width()


def test_parts_touch_and_never_overlap(bars):
    assert bars.part_rect(0, 0).right() == pytest.approx(bars.part_rect(0, 1).left())


def test_a_click_activates_the_part_under_it_and_a_drag_off_it_nothing(bars, qtbot):
    middle = bars.part_rect(0, 1).center().toPoint()
    with qtbot.waitSignal(bars.activated) as activated:
        qtbot.mouseClick(bars, Qt.MouseButton.LeftButton, pos=middle)
    assert activated.args == [0, "p1"]
    with qtbot.assertNotEmitted(bars.activated):
        qtbot.mousePress(bars, Qt.MouseButton.LeftButton, pos=middle)
        qtbot.mouseRelease(bars, Qt.MouseButton.LeftButton, pos=QPoint(1, 1))


def test_bars_are_described_as_text(bars):
    assert bars.accessibleDescription().splitlines()[1] == "step 10: part 0: 5, part 1: 5"


def test_bars_without_parts_can_be_shown_and_walked_over(bars, qtbot):
    bars.set_bars((Bar("nothing", ()),))
    qtbot.keyClick(bars, Qt.Key.Key_Right)
    assert not bars.grab().isNull()


def test_bars_are_painted_in_the_colours_of_the_theme(bars, theme):
    point = bars.part_rect(0, 0).topLeft().toPoint() + QPoint(2, 2)
    assert bars.grab().toImage().pixelColor(point).name() == LIGHT.computing
    theme.apply(ThemeMode.DARK)
    assert bars.grab().toImage().pixelColor(point).name() == DARK.computing


def test_every_bar_stands_in_exactly_one_column(columns):
    columns.set_rows((ColumnRow("rank 0", tuple(bar(value, title=str(value)) for value in range(1, 1001))),))
    groups = columns.groups(0)
    assert [index for group in groups for index in group] == list(range(1000))
    assert len(groups) < 1000


def test_columns_that_share_pixels_answer_with_the_median(columns, qtbot):
    columns.set_rows((ColumnRow("", tuple(bar(value) for value in (1, 9, 5) * 300)),))
    columns.resize(120, 100)
    group = columns.groups(0)[0]
    totals = sorted(columns.rows[0].bars[index].total for index in group)
    with qtbot.waitSignal(columns.activated) as activated:
        middle = columns.column_rect(0, 0).center().toPoint()
        qtbot.mouseClick(columns, Qt.MouseButton.LeftButton, pos=middle)
    assert columns.rows[0].bars[activated.args[1]].total == totals[(len(totals) - 1) // 2]


def test_columns_can_be_walked_over_by_keys(columns, qtbot):
    columns.set_rows((ColumnRow("a", (bar(1), bar(2))), ColumnRow("b", (bar(3), bar(4)))))
    with qtbot.waitSignal(columns.activated) as activated:
        for key in (Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Down, Qt.Key.Key_Return):
            qtbot.keyClick(columns, key)
    assert activated.args == [1, 1]


def test_columns_are_described_by_minimum_median_and_maximum(columns):
    columns.set_rows((ColumnRow("rank 0", (bar(3), bar(1), bar(2))),))
    assert columns.accessibleDescription() == "rank 0: 3; 1 – 2 – 3"


def test_a_row_without_columns_can_be_painted(columns):
    columns.set_rows((ColumnRow("empty", ()), ColumnRow("full", (bar(1),))))
    assert not columns.grab().isNull()


def test_a_narrow_legend_takes_more_lines(theme, qtbot):
    legend = Legend(theme)
    qtbot.addWidget(legend)
    legend.set_entries(tuple(LegendEntry(f"entry {index}", COMPUTING) for index in range(6)))
    assert legend.heightForWidth(120) > legend.heightForWidth(1000)
    assert legend.accessibleName().startswith("entry 0, entry 1")


def test_text_on_dark_fills_is_light_and_the_other_way_round():
    assert text_colour_on(IDLE, LIGHT).lightness() < 60
    assert text_colour_on(IDLE, DARK).lightness() > 200
