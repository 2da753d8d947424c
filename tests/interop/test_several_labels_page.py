"""The page on several labels runs as printed."""

from tests.scripts import run_python, scripts_of


def test_the_page(tmp_path):
    run_python(["-c", "".join(scripts_of("several-labels.md"))], tmp_path)
