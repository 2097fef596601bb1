"""Every script in examples/ runs, as a reader would run it."""

from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "examples"
SCRIPTS = sorted(FOLDER.glob("*.py"))
# Fewer updates than a reader would make: that it runs is what is tested.
ARGUMENTS = {"reaction_times": ["300"]}


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_example_runs(script, tmp_path, warm):
    done = warm.run(script, *ARGUMENTS.get(script.stem, []), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip(), "an example should show something"
