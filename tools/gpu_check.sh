#!/usr/bin/env bash
# Checks everything about CUDA that needs a card, in ten minutes on one: builds, runs stage after stage, writes results.
#
#   tools/gpu_check.sh [--binary DIR] [--out DIR] [--stages NAME,…] [--minutes N] [--models DIR] [--torch PYTHON]
#
# docs/gpu/STATUS.md tells what it proves. Exit codes: 0 all passed, 1 something failed or nothing passed, 2 usage, 3 no card.
set -euo pipefail
if ! command -v python3 > /dev/null; then
  echo "gpu_check: python3 is missing" >&2
  exit 2
fi
exec python3 "$(dirname "${BASH_SOURCE[0]}")/gpu_check.py" "$@"
