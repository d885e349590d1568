#!/usr/bin/env bash
# clang-tidy over all sources of the preset cpu, or over those given, each by the compile command that it has alone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cmake --preset cpu -B build-tidy -DTANDEM_GROUP_KIB=0 -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >/dev/null
if (($#)); then
  printf '%s\0' "$@"
else
  python3 tools/check_tree.py --list-sources | grep -z '\.cpp$' | grep -zv '^tests/\|^kernels/cuda/'
fi | xargs -0 -n 4 -P "$(nproc)" clang-tidy -p build-tidy --quiet
