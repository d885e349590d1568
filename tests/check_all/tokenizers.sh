#!/usr/bin/env bash
# 10,000 lines by each of the small tokenizers of tests/scripts/tokenizer_expectations.py, against Hugging Face's library. Needs its package
# `tokenizers`, which comes with transformers.
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
peer=$(cd tests/check_all && python3 -c 'from common import peer_python; print(peer_python(None))') || exit 1
file=$(mktemp) || exit 1
trap 'rm -f "$file"' EXIT
"$peer" -c 'import tokenizers' 2>/dev/null || { echo "skipped: this Python has no package tokenizers"; exit 0; }
"$peer" tests/scripts/tokenizer_expectations.py --lines 10000 >"$file" || exit 1
TANDEM_TOKENIZER_LINES=$file build/tests/test_training --gtest_filter='TokenizerLines.*'
