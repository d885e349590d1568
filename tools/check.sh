#!/usr/bin/env bash
# Formatting, include borders, file sizes, plain English.   --fix: format instead of complaining.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=14 # another version formats differently
status=0
if command -v clang-format >/dev/null && clang-format --version | grep -q "version $version\."; then
  mapfile -d '' files < <(python3 tools/check_tree.py --list-sources)
  if [[ ${1:-} == --fix ]]; then
    ((${#files[@]})) && clang-format -i "${files[@]}"
  elif ((${#files[@]})); then
    unformatted=$(clang-format --dry-run "${files[@]}" 2>&1 | sed -n 's/^\([^:]*\):[0-9:]* warning:.*/\1/p' | uniq -c)
    if [[ -n $unformatted ]]; then
      printf 'check: to be formatted (places, file): run "make format"\n%s\n' "$unformatted" >&2
      status=1
    fi
  fi
else
  echo "check: no clang-format $version: formatting is not checked (tools/setup.sh --developer)" >&2
fi
python3 tools/check_tree.py || status=1
python3 tools/check_words.py || status=1
exit $status
