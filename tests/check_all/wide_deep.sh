#!/usr/bin/env bash
# Wide & Deep and DLRM on data with a planted answer.
exec python3 "$(dirname "${BASH_SOURCE[0]}")/wide_deep.py" "$@"
