#!/usr/bin/env bash
# Checks and measures on a machine with a GPU what only a GPU can show, in parts of at most four minutes. `--help` has the options.
#
#   tools/gpu_run.sh PART      1 check, 2 times, 3 sanitize, 4 profile; report
#
# docs/cuda.md tells how, docs/gpu/STATUS.md what it proves.
# Exit codes: 0 all passed, 1 something failed or nothing passed, 2 usage, 3 no GPU, 4 out of time: --resume goes on.
set -euo pipefail
if ! command -v python3 > /dev/null; then
  echo "gpu_run: python3 is missing" >&2
  exit 2
fi
exec python3 "$(dirname "${BASH_SOURCE[0]}")/gpu/gpu_run.py" "$@"
