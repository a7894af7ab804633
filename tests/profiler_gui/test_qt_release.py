"""Guards against the Qt binding's release that loses a reference to None at every void call (6.12.0 on Python 3.11)."""

import sys

from PySide6.QtCore import QObject

CALLS = 10_000
SLACK = 500


def test_void_calls_of_qt_keep_the_reference_count_of_none(qapp):
    item = QObject()
    item.setObjectName("warm")
    before = sys.getrefcount(None)
    for _ in range(CALLS):
        item.setObjectName("x")
    assert abs(sys.getrefcount(None) - before) < SLACK
