#!/usr/bin/env bash
# Installs what is missing, builds, and runs the quick tests.
#
#   tools/test.sh [PRESET] [ctest arguments…]     PRESET: cpu (default), ci, cuda, debug, asan, ubsan, tsan
#
# TANDEM_TEST_ONLY=REGEX   only tests whose SUITE.NAME matches
# TANDEM_TEST_EACH=1       a process for each test
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=cpu
if (($#)) && [[ $1 != -* ]]; then
  preset=$1
  shift
fi
tools/build.sh "$preset"
exec ctest --preset "$preset" -j "$(nproc)" "$@"
