#!/usr/bin/env bash
# Installs what is missing, then configures and builds.
#
#   tools/build.sh [PRESET] [targets…]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=${1:-cpu}
shift || true
tools/setup.sh
cmake --preset "$preset"
cmake --build --preset "$preset" ${1:+--target "$@"}
