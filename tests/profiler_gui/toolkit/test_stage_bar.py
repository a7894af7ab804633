from profiler_gui.toolkit.stage_bar import StageBar


def test_a_stage_is_cut_to_the_bar_and_stands_whole_in_the_tooltip(qtbot):
    bar = StageBar("Progress")
    qtbot.addWidget(bar)
    bar.resize(60, 20)
    bar.show()
    bar.show_stage(0.5, "rank 3: tasks and launches of many kinds")
    assert bar.format().endswith("…")
    assert bar.toolTip() == "rank 3: tasks and launches of many kinds"
    bar.resize(900, 20)
    assert bar.format() == bar.toolTip()
    bar.clear_stage()
    assert (bar.format(), bar.toolTip()) == ("", "")
