#!/bin/sh
# The kernel for 64-bit ARM (NEON): cross-compiled, and its test program run under an emulator. On Debian:
# apt-get install g++-aarch64-linux-gnu qemu-user. The argument is the number of random networks.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build="$root/build/neon"
cmake -S "$root" -B "$build" -DLAPSUS_PYTHON=OFF -DLAPSUS_TESTS=ON -DCMAKE_CXX_FLAGS=-Werror \
    -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ >/dev/null
cmake --build "$build" --parallel 2 >/dev/null
qemu-aarch64 -L /usr/aarch64-linux-gnu "$build/test_engine" "${1:-15}"
