#!/bin/sh
# The kernel's test program under the address, undefined-behaviour and thread sanitizers. Stops at the first finding.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
for kind in address,undefined thread; do
    build="$root/build/sanitize-$kind"
    cmake -S "$root" -B "$build" -DLAPSUS_PYTHON=OFF -DLAPSUS_TESTS=ON -DCMAKE_BUILD_TYPE=None -DLAPSUS_OPTIMIZE=-O0 \
        -DCMAKE_CXX_FLAGS="-g -fno-omit-frame-pointer -fno-sanitize-recover=all -fsanitize=$kind" >/dev/null
    cmake --build "$build" --parallel 2 >/dev/null
    echo "sanitizer: $kind"
    "$build/test_engine" "${1:-15}"
done
