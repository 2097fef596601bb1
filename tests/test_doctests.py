"""Every public object has an example, and every example of the package comes out as printed."""

import contextlib
import doctest
import importlib
import inspect
import io
import pkgutil

import pytest
import torch

import lapsus

PUBLIC = [name for name in lapsus.__all__ if not inspect.ismodule(getattr(lapsus, name))]


def modules():
    for module in pkgutil.walk_packages(lapsus.__path__, "lapsus."):
        if not module.name.rsplit(".", 1)[1].startswith("_"):
            yield module.name


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_object_says_what_it_is_with_an_example(name):
    assert ">>>" in (inspect.getdoc(getattr(lapsus, name)) or "")


@pytest.mark.slow
def test_examples_come_out_as_printed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    finder, tried, said = doctest.DocTestFinder(), 0, io.StringIO()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for module in map(importlib.import_module, modules()):
        for test in finder.find(module, module.__name__, extraglobs={"lapsus": lapsus, "torch": torch}):
            with contextlib.redirect_stderr(io.StringIO()):
                found = runner.run(test, out=said.write)
            assert not found.failed, said.getvalue()
            tried += bool(test.examples)
    assert tried >= len(PUBLIC)
