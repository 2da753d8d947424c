"""Errors are of the standard kinds too."""

import pytest

from hstree import errors


@pytest.mark.parametrize("name", ["TreeError", "InputError", "OptionError"])
def test_wrong_values_are_value_errors(name):
    error = getattr(errors, name)("wrong")
    assert isinstance(error, ValueError)
    assert isinstance(error, errors.HstreeError)


def test_a_missing_extra_is_an_import_error():
    assert issubclass(errors.MissingExtraError, ImportError)
