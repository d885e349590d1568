#!/bin/sh
# Prints UNANSWERED(name) for each function of a driver library that driver.cpp does not answer.
#   list_symbols.sh .../stubs/libcuda.so driver.cpp > symbols.inc
set -eu
sed -n 's/^int \(cu[A-Za-z0-9_]*\)(.*/\1/p' "$2" > "${TMPDIR:-/tmp}/answered.$$"
trap 'rm -f "${TMPDIR:-/tmp}/answered.$$"' EXIT
nm -D --defined-only "$1" | awk '$2 == "T" && $3 ~ /^cu/ { print $3 }' | sort -u |
  grep -v -x -F -f "${TMPDIR:-/tmp}/answered.$$" | sed 's/.*/UNANSWERED(&)/'
