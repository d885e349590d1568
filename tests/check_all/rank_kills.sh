#!/usr/bin/env bash
# Twenty kills of one of four ranks at any time, also while they write a checkpoint: nothing of the run is lost.
exec python3 "$(dirname "${BASH_SOURCE[0]}")/rank_kills.py" "$@"
