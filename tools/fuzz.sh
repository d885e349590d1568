#!/usr/bin/env bash
# Runs the fuzz targets one after the other, each from its seeds and the committed inputs on; a find ends with its file named.
#
#   tools/fuzz.sh [--seconds N] [--keep] [TARGET…]     N: of each target (600); TARGET: fuzz_onnx fuzz_data fuzz_settings fuzz_checkpoint
#
# New inputs go to build-fuzz/corpus/TARGET. --keep packs those that reach code which the others do not into tests/fuzz/corpus.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=600 keep=false targets=()
while (($#)); do
  case $1 in
    --seconds) seconds=$2; shift ;;
    --keep) keep=true ;;
    fuzz_*) targets+=("$1") ;;
    *) echo "usage: tools/fuzz.sh [--seconds N] [--keep] [TARGET…]" >&2; exit 2 ;;
  esac
  shift
done
((${#targets[@]})) || targets=(fuzz_onnx fuzz_data fuzz_settings fuzz_checkpoint)
command -v clang++ > /dev/null || { echo "clang++ is missing: tools/setup.sh --developer installs it" >&2; exit 2; }

cmake --preset fuzz > /dev/null
cmake --build --preset fuzz --target "${targets[@]}"
corpus=build-fuzz/corpus
python3 tests/fuzz/make_seeds.py "$corpus"
for target in "${targets[@]}"; do
  packed=tests/fuzz/corpus/$target.tar.xz # many small inputs that resemble each other: gzip makes 16 times as much
  if [[ -e $packed ]]; then tar -xJf "$packed" -C "$corpus/$target"; fi
  longest=65536
  if [[ $target == fuzz_checkpoint ]]; then longest=128; fi
  echo "== $target, $seconds s"
  # A model of some kilobytes may take gigabytes of address space by right, never of memory.
  (cd build-fuzz && TMPDIR=/dev/shm tests/fuzz/"$target" -max_total_time="$seconds" -max_len=$longest -timeout=60 -rss_limit_mb=4096 \
    -print_final_stats=1 -artifact_prefix="$target-find-" "corpus/$target") 2>&1 | grep -vE '^#[0-9]+\s+(NEW|REDUCE|pulse)|NEW_FUNC'
  if $keep; then
    rm -rf "build-fuzz/merged/$target" && mkdir -p "build-fuzz/merged/$target" tests/fuzz/corpus
    TMPDIR=/dev/shm "build-fuzz/tests/fuzz/$target" -merge=1 "build-fuzz/merged/$target" "$corpus/$target" 2> /dev/null
    tar --sort=name --mtime=@0 --owner=0 --group=0 -C "build-fuzz/merged/$target" -c . | xz -9e > "$packed"
    ls -l "$packed"
  fi
done
