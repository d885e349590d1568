#!/usr/bin/env bash
# Everything that a release must pass: sanitizers, long trainings, full-size comparisons. Takes hours on two cores, asan alone two.
# `make check` ran before. Each stage runs even if an earlier one failed; the last lines say which did.
#
#   tools/check_all.sh [STAGE…]     quick asan tsan long fuzz scripts (default: all of them, in this order)
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export TANDEM_CHECK_ALL=1
export ASAN_OPTIONS=${ASAN_OPTIONS:-strict_string_checks=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
summary=()
failed=0

stage() { # NAME COMMAND…
  local name=$1 start=$SECONDS result=passed
  shift
  echo "== $name: $*"
  "$@" || { result=FAILED; failed=1; }
  summary+=("$(printf '%-40s %s  %6d s' "$name" "$result" $((SECONDS - start)))")
}

long_tests() {
  tools/build.sh cpu && ctest --test-dir build -L '^long$' --output-on-failure
}

stages=("$@")
((${#stages[@]})) || stages=(quick asan tsan long fuzz scripts)
for name in "${stages[@]}"; do
  case $name in
    quick) stage quick tools/test.sh cpu ;;
    asan) stage asan+ubsan tools/test.sh asan ;;
    tsan) stage tsan tools/test.sh tsan ;;
    fuzz) stage "fuzz targets" tools/fuzz.sh --seconds 300 ;;
    long) stage "long tests" long_tests ;;
    scripts)
      for script in tests/check_all/*.sh; do
        [[ -e $script ]] && stage "$script" bash "$script"
      done
      ;;
    *) echo "unknown stage $name" >&2; exit 2 ;;
  esac
done
echo
printf '%s\n' "${summary[@]}"
exit $failed
