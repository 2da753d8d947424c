"""Models with a user's own network in PyTorch."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import nn

from hstree._text import brief, named_error
from hstree.errors import OptionError
from hstree.layers.registry import LayerSpec
from hstree.models.torch.contract import call_network, first_state, refusal
from hstree.models.torch.model import TorchModel
from hstree.models.torch.session import torch_session
from hstree.tree import Tree


@dataclass(eq=False)
class TorchNetwork(TorchModel):
    """Your own network in PyTorch, which predicts each word from the words before it.

    Parameters
    ----------
    network : str
        Function that makes it, "package.module:function" or "file.py:function", called as
        ``function(n_words, dim, **arguments)``. It is your own code, which runs when the model is
        trained or loaded.
    arguments : str
        More arguments of the function, such as "layers=2 tied=true".
    source : str
        SHA-256 of the file of the function, which a saved model records (default: that of the
        present file).
    """

    name: ClassVar[str] = "torch"
    _has_table: ClassVar[bool] = False

    _: KW_ONLY
    network: str = ""
    arguments: str = ""
    source: str = ""

    def __post_init__(self, output: Tree | LayerSpec) -> None:
        super().__post_init__(output)
        file = Path(str(module_spec(self.network).origin))
        present = hashlib.sha256(file.read_bytes()).hexdigest()
        if self.source not in ("", present):
            warnings.warn(
                f"the source of the network {self.network} has changed since the model was "
                "trained; its results may differ: restore the file, or train the model again",
                stacklevel=4,
            )
        self.source = self.source or present
        self._arguments: dict[str, Any] = {}
        for pair in self.arguments.split():
            key, equals, value = pair.partition("=")
            if not (equals and key.isidentifier()):
                reason = f"is {self.arguments!r}; write key=value, as in layers=2"
                raise OptionError.about("arguments", reason)
            self._arguments[key] = value
            with suppress(ValueError):  # a number, true, false or null; text otherwise
                self._arguments[key] = json.loads(value)

    def _check(self) -> None:
        """Raise OptionError also if the network cannot be made and used."""
        super()._check()
        first_state(self, 1)
        with torch_session(self.torch_device):
            ids = torch.zeros(1, self.length, dtype=torch.int64, device=self.torch_device)
            self.module.train()
            call_network(self, ids, None)

    def make_network(self) -> nn.Module:
        """Return the network that the user's function makes."""
        function = load_function(self.network)
        try:
            network = function(len(self.spec.labels), self.dim, **self._arguments)
        except Exception as error:  # the user's function may raise any exception
            raise refusal(self.network, f"raises {named_error(error)}") from error
        if not isinstance(network, nn.Module):
            raise refusal(self.network, f"returns {brief(network)}, not a torch.nn.Module")
        return network


def module_spec(network: str) -> ModuleSpec:
    """Find the module of a function, "package.module:function" or "file.py:function".

    The folder of the file, or else the current folder, is searched last for imports. The packages
    of "package.module:function" are imported, but not the module. Raises OptionError if there is
    none.
    """
    module, _, function = network.rpartition(":")
    if not (module and function.isidentifier()):
        reason = f"is {network!r}; it must be package.module:function or file.py:function"
        raise OptionError.about("network", reason)
    is_file = module.endswith(".py")
    # an installed program searches neither folder
    folder = os.path.abspath(os.path.dirname(module) if is_file else "")
    if folder not in map(os.path.abspath, sys.path):
        sys.path.append(folder)
    if is_file:
        spec = spec_from_file_location(Path(module).stem, module)
    else:
        try:
            spec = find_spec(module)
        except Exception as error:  # the user's packages may raise any exception
            raise import_failure(network, error) from error
    if spec is None or not Path(str(spec.origin)).is_file():
        reason = (
            f"is {network!r}, but there is no {module} here; give the path of its file, or "
            "the name of a module in the current folder or an installed package"
        )
        raise OptionError.about("network", reason)
    return spec


def load_function(network: str) -> Callable[..., Any]:
    """Import the function that `network` names, in the form of `module_spec`.

    The file or the module is the user's own code, which runs. Raises OptionError if it cannot be
    imported, or has no such function.
    """
    spec = module_spec(network)
    try:
        if network.rpartition(":")[0].endswith(".py"):
            module = module_from_spec(spec)
            sys.modules.setdefault(spec.name, module)
            spec.loader.exec_module(module)  # type: ignore[union-attr]
        else:
            module = import_module(spec.name)
        function: Callable[..., Any] = getattr(module, network.rpartition(":")[2])
    except Exception as error:  # the user's module may raise any exception
        raise import_failure(network, error) from error
    if not callable(function):
        raise OptionError.about("network", f"is {network!r}, which is no function")
    return function


def import_failure(network: str, error: Exception) -> OptionError:
    """Return the error of a network whose packages or module raise when imported."""
    reason = f"is {network!r}, which cannot be imported: {named_error(error)}"
    return OptionError.about("network", reason)
