#!/usr/bin/env bash
# Every pair of options of a training: it trains, resumes and exports, or is refused before the first step.
exec python3 "$(dirname "${BASH_SOURCE[0]}")/option_pairs.py" "$@"
