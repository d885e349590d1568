#!/usr/bin/env bash
# Packs what a machine with a GPU and nothing else needs: the GPU check and the tool, their libraries, their fixtures.
#
#   tools/gpu_pack.sh [--architectures LIST] [--build DIR] [--to DIR]
#   tools/gpu_pack.sh --measure FILE
#
#   --architectures  the GPUs that there is machine code for (default 90; several: 80-real;90)
#   --build DIR      packs the programs of this finished build; without it they are built, in build-gpu-pack/build
#   --to DIR         where tandem-gpu.tar.xz goes (default build-gpu-pack)
#   --measure FILE   packs nothing: says whether this pack and the tree fit into what a visit may take along, 64 MiB
#
# Needs no GPU. tools/gpu_run.sh unpacks and runs it (docs/cuda.md). Exit codes: 0 packed, 1 not, 2 usage, 77 the build has no CUDA.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

most_bytes=$((40 << 20))
visit_bytes=$((64 << 20)) # for the pack and the tree together
# These come with every Linux of today; all others are packed. What is packed fits glibc 2.39 and GCC 14 or older ones: tests/tools/gpu_pack_test.py.
of_the_system='^(linux-vdso|ld-linux-x86-64|libc|libm|libdl|libpthread|librt|libstdc[+][+]|libgcc_s)\.so'

die() {
  echo "gpu_pack: $1" >&2
  exit "${2:-1}"
}

# Bytes of the tree as it travels: what git has or would take, else everything but build folders. From large to small: "BYTES FILE".
tree_files() {
  if git -C "$root" rev-parse --git-dir &> /dev/null; then
    git -C "$root" ls-files --cached --others --exclude-standard -z
  else
    (cd "$root" && find . -path './build*' -prune -o -type f -print0)
  fi | (cd "$root" && xargs -0r stat -c '%s %n' 2> /dev/null || true) | sort -rn
}

# Says how much pack and tree are together; dies where that is too much for a visit.
measure() {
  local pack tree together
  pack=$(stat -c %s "$1")
  tree=$(tree_files | awk '{ bytes += $1 } END { printf "%d", bytes }')
  together=$((pack + tree))
  if ((together > visit_bytes)); then
    echo "gpu_pack: the largest files of the tree:" >&2
    tree_files | awk 'NR <= 5 { printf "  %6d KiB  %s\n", $1 / 1024, $2 }' >&2
    die "pack and tree are $((together >> 10)) KiB together ($((pack >> 10)) and $((tree >> 10))), more than the $((visit_bytes >> 10)) KiB of a visit: leave files of the tree behind, or pack for fewer --architectures"
  fi
  echo "pack and tree together: $((together >> 10)) KiB of $((visit_bytes >> 10))"
}

architectures=90 build='' to=$root/build-gpu-pack
while (($#)); do
  [[ $1 =~ ^--(architectures|build|to|measure)$ ]] || die "unknown option $1: --architectures, --build, --to, --measure" 2
  (($# > 1)) || die "$1 needs a value" 2
  case $1 in
    --architectures) architectures=$2 ;;
    --build) build=$(realpath -m "$2") ;;
    --to) to=$(realpath -m "$2") ;;
    --measure)
      [[ -f $2 ]] || die "--measure: there is no $2" 2
      measure "$2"
      exit 0
      ;;
  esac
  shift 2
done

if [[ -z $build ]]; then
  build=$root/build-gpu-pack/build
  "$root/tools/setup.sh" --program
  cmake -S "$root" --preset cuda -B "$build" -DCMAKE_CUDA_ARCHITECTURES="$architectures" -DTANDEM_BENCH=OFF
  cmake --build "$build" --target tandem_tool gpu_check
fi
for program in tandem gpu_check; do
  [[ -x $build/$program ]] || die "there is no program $program in $build: no build with CUDA, or not finished" 77
done
architectures=$(sed -n 's/^CMAKE_CUDA_ARCHITECTURES:[^=]*=//p' "$build/CMakeCache.txt")

pack=$to/tandem-gpu
rm -rf "$pack" "$pack.tar.xz"
mkdir -p "$pack/lib"
# In place of the folders of this machine's libraries, as CMake does when it installs.
# shellcheck disable=SC2016
echo 'file(RPATH_SET FILE "${FILE}" NEW_RPATH "$ORIGIN/lib")' > "$to/runpath.cmake"
for program in tandem gpu_check; do
  strip -o "$pack/$program" "$build/$program"
  cmake -D FILE="$pack/$program" -P "$to/runpath.cmake"
  while read -r name arrow file _; do
    [[ $arrow == '=>' && ! $name =~ $of_the_system && ! -e $pack/lib/$name ]] || continue
    [[ -f $file ]] || die "$program needs $name, which is not found here"
    strip --strip-unneeded -o "$pack/lib/$name" "$file"
  done < <(ldd "$build/$program")
done
cp -rL "$build/fixtures" "$pack/fixtures"

# A library that only another library asks for is not looked for in $ORIGIN/lib, unless the program names it, too.
for file in "$pack"/tandem "$pack"/gpu_check; do
  while read -r name arrow found _; do
    [[ $arrow == '=>' && ! $name =~ $of_the_system ]] || continue
    [[ $found == "$pack/lib/$name" ]] || die "$name would be taken from ${found/not/nowhere}, not from the pack"
  done < <(env -i "$(command -v ldd)" "$file")
done

commit=$(git -C "$root" rev-parse HEAD 2> /dev/null || echo unknown)
changed=$(git -C "$root" status --porcelain --untracked-files=no 2> /dev/null | wc -l)
toolkit=$(sed -n 's/^set(CMAKE_CUDA_COMPILER_VERSION "\(.*\)")$/\1/p' "$build"/CMakeFiles/*/CMakeCUDACompiler.cmake)
printf '{"commit": "%s", "changed_files": %d, "architectures": "%s", "nvcc": "%s"}\n' \
  "$commit" "$changed" "$architectures" "$toolkit" > "$pack/pack.json"

# Both programs hold the same code for GPUs: a dictionary that reaches from one to the other.
XZ_OPT='--lzma2=preset=3,dict=256MiB' tar -C "$to" --sort=name --owner=0 --group=0 --numeric-owner -cJf "$pack.tar.xz" tandem-gpu
rm -rf "$pack" "$to/runpath.cmake"
bytes=$(stat -c %s "$pack.tar.xz")
((bytes <= most_bytes)) || die "$pack.tar.xz has $bytes bytes, more than $most_bytes"
echo "$pack.tar.xz: $((bytes >> 10)) KiB, code for $architectures"
measure "$pack.tar.xz"
