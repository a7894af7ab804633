"""The record of faults names tests; a test that was renamed or removed must not stand there."""

import re

from tests.support.captures import REPOSITORY


def test_every_test_the_record_of_faults_names_exists():
    named = set(re.findall(r"`(test_\w+)`", (REPOSITORY / "docs" / "faults.md").read_text(encoding="utf-8")))
    sources = (path.read_text(encoding="utf-8") for path in (REPOSITORY / "tests" / "engine").rglob("test_*.py"))
    existing = {name for source in sources for name in re.findall(r"^def (test_\w+)", source, re.MULTILINE)}
    assert len(named) > 80
    assert named - existing == set()
