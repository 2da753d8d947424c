"""The short form of the kill campaign."""

import os

import pytest

from tests.campaigns.kills import run


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
def test_killed_commands_leave_what_is_whole():
    assert run(kills=10) == []
