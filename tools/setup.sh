#!/usr/bin/env bash
# Installs what Tandem's build needs and is not there yet. A second run does nothing.
#
#   tools/setup.sh              Debian packages, oneDNN, the ONNX C++ library, cpp-httplib, a Python with what the Python
#                               package's build and tests need; cuobjdump, where there is nvcc 13 without it
#   tools/setup.sh --program    without that Python
#   tools/setup.sh --developer  also clang-format, clang-tidy and clang (for `make check`, `make tidy` and the preset fuzz)
#   tools/setup.sh --onnx       the ONNX C++ library and cpp-httplib alone, for recipes of packages that bring all else
#   tools/setup.sh --check      exit 0 if nothing is missing, else list it and exit 1
#   tools/setup.sh --prefixes   print where the three libraries and that Python are (CMake reads this)
#
# TANDEM_DEPS    folder for what is no package    default: ${XDG_CACHE_HOME:-~/.cache}/tandem/deps
# TANDEM_WHEELS  folder with the downloads, for machines without a network
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${XDG_CACHE_HOME:-}
[[ -n $cache ]] || cache=~/.cache # works without HOME, too
deps=${TANDEM_DEPS:-$cache/tandem/deps}

packages=(g++ make cmake ninja-build ccache python3 python3-pip python3-venv
          protobuf-compiler libprotobuf-dev libtomlplusplus-dev libcli11-dev nlohmann-json3-dev
          libfmt-dev libdlpack-dev zlib1g-dev libjpeg-dev libpng-dev libpcre2-dev libutf8proc-dev
          libgtest-dev libgmock-dev libbenchmark-dev libopenmpi-dev openmpi-bin)
developer_packages=(clang-format clang-tidy clang libclang-rt-dev xz-utils)

onednn_version=3.2
onednn_release=2023.2.0
onednn_hash=2f22a54d6a890ed14bfa185d42a4be65d8b5b1df85dc1f0f3a9abe31620416fb
onednn_headers_hash=9763c69e8c907e119056bd52ad918ca84ac9ba939d130a99dfa95ccca3e5e284
onnx_version=1.23.2
onnx_hash=008cb0467b2bbee41448acc7da8b6f4e704624cb0d327a2d5adafc7ce19bc5b8
# The sources of cpp-httplib are a part of this package of PyPI.
httplib_version=0.58.0
httplib_package=0.3.36
httplib_hash=832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e
cuobjdump_version=13.2.51
cuobjdump_hash=95c69d3ddf0c2c1f535ec44c3433a66aeee19f588d9d22f73356e20b25f12b50

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

missing_packages() {
  local package
  for package in "$@"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || printf '%s\n' "$package"
  done
}

install_packages() {
  command -v dpkg-query >/dev/null || die "not Debian or Ubuntu: install the equivalents of: $*"
  local missing run=()
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]})) || return 0
  say "installing ${missing[*]}"
  if ((EUID != 0)); then
    command -v sudo >/dev/null || die "run as root, or install these yourself: ${missing[*]}"
    run=(sudo)
  fi
  "${run[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q update >&2
  "${run[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qy install --no-install-recommends "${missing[@]}" >&2
}

# The system's own oneDNN is used where it is version 3 or newer and comes with its CMake package.
system_onednn() {
  local header config
  for header in /usr/local/include /usr/include; do
    header+=/oneapi/dnnl/dnnl_version.h
    [[ -f $header ]] || continue
    (($(sed -n 's/^#define DNNL_VERSION_MAJOR \([0-9]*\).*/\1/p' "$header") == 3)) || continue
    for config in /usr/local/lib /usr/local/lib/*-linux-gnu /usr/lib/*-linux-gnu /usr/lib; do
      [[ -f $config/cmake/dnnl/dnnl-config.cmake ]] && return 0
    done
  done
  return 1
}

onednn_prefix() { printf '%s/onednn-%s\n' "$deps" "$onednn_version"; }

# One folder per compiler, protobuf and recipe: an upgrade of any of them builds the library again.
onnx_prefix() {
  local compiler protobuf recipe
  compiler=$(g++ -dumpfullversion 2>/dev/null || echo none)
  protobuf=$(protoc --version 2>/dev/null || echo none)
  recipe=$(sha256sum <"$root/cmake/onnx/CMakeLists.txt")
  printf '%s/onnx-%s-gcc%s-protobuf%s-%s\n' "$deps" "$onnx_version" "$compiler" "${protobuf##* }" "${recipe:0:8}"
}

# download FOLDER FILE SHA256 PIP-ARGUMENTS…: FILE from the Python package index, or from TANDEM_WHEELS.
download() {
  local folder=$1 file=$2 hash=$3
  shift 3
  if [[ -n ${TANDEM_WHEELS:-} && -f $TANDEM_WHEELS/$file ]]; then
    cp "$TANDEM_WHEELS/$file" "$folder/$file"
  else
    say "downloading $file"
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$folder" \
      ${TANDEM_WHEELS:+--find-links "$TANDEM_WHEELS"} "$@" >&2 || die "could not download $file"
  fi
  echo "$hash  $folder/$file" | sha256sum --check --quiet >&2 || die "$file is not the file this project was built with"
}

install_onednn() {
  local prefix work wheels
  prefix=$(onednn_prefix)
  [[ -d $prefix ]] && return 0
  work=$1/onednn
  wheels=$work/wheels
  mkdir -p "$wheels" "$work/unpacked" "$work/prefix"
  local library=onednn_cpu_gomp-$onednn_release-py2.py3-none-manylinux1_x86_64.whl
  local headers=onednn_devel_cpu_gomp-$onednn_release-py2.py3-none-manylinux1_x86_64.whl
  download "$wheels" "$library" "$onednn_hash" --only-binary :all: "onednn-cpu-gomp==$onednn_release"
  download "$wheels" "$headers" "$onednn_headers_hash" --only-binary :all: "onednn-devel-cpu-gomp==$onednn_release"
  local wheel
  for wheel in "$library" "$headers"; do
    python3 -m zipfile -e "$wheels/$wheel" "$work/unpacked"
  done
  # oneDNN's CMake package looks for the library next to itself, so both wheels go into one prefix;
  # the wheel holds the library three times where a link is meant.
  cp -r "$work"/unpacked/*.data/data/. "$work/prefix/"
  chmod -R u+rwX,go+rX "$work/prefix"
  ln -sf libdnnl.so.$onednn_version "$work/prefix/lib/libdnnl.so.3"
  ln -sf libdnnl.so.3 "$work/prefix/lib/libdnnl.so"
  mv -T "$work/prefix" "$prefix"
  say "oneDNN $onednn_version is in $prefix"
}

install_onnx() {
  local prefix work
  prefix=$(onnx_prefix)
  [[ -d $prefix ]] && return 0
  work=$1/onnx
  mkdir -p "$work/source"
  download "$work" "onnx-$onnx_version.tar.gz" "$onnx_hash" --no-binary onnx "onnx==$onnx_version"
  tar -xzf "$work/onnx-$onnx_version.tar.gz" -C "$work/source" --strip-components=1
  say "building the ONNX library (about two minutes, once)"
  local log=$work/build.log
  {
    cmake -S "$root/cmake/onnx" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
      -DONNX_SOURCE="$work/source" -DCMAKE_INSTALL_PREFIX="$work/prefix" &&
      cmake --build "$work/build" && cmake --install "$work/build"
  } >"$log" 2>&1 || { tail -n 40 "$log" >&2; die "the ONNX library did not build"; }
  mv -T "$work/prefix" "$prefix"
  say "ONNX $onnx_version is in $prefix"
}

httplib_prefix() { printf '%s/httplib-%s\n' "$deps" "$httplib_version"; }

install_httplib() {
  local work=$1/httplib archive=llama_cpp_python-$httplib_package.tar.gz
  local sources=llama_cpp_python-$httplib_package/vendor/llama.cpp/vendor/cpp-httplib
  mkdir -p "$work"
  # One attempt: builds without a network come by here each time.
  PIP_RETRIES=0 download "$work" "$archive" "$httplib_hash" --no-binary llama-cpp-python "llama-cpp-python==$httplib_package"
  mkdir "$work/prefix"
  tar -xzf "$work/$archive" -C "$work/prefix" --strip-components=5 "$sources"/{httplib.h,httplib.cpp,LICENSE} || return 1
  grep -q "VERSION \"$httplib_version\"" "$work/prefix/httplib.h" || die "cpp-httplib is not $httplib_version"
  mv -T "$work/prefix" "$(httplib_prefix)" || return 1
  say "cpp-httplib $httplib_version is in $(httplib_prefix)"
}

# One folder per interpreter and list of packages.
python_prefix() {
  local version list
  version=$(python3 -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null || echo none)
  list=$(sha256sum <"$root/tests/python/requirements.txt")
  printf '%s/python-%s-%s\n' "$deps" "$version" "${list:0:8}"
}

install_python() {
  local prefix work=$1/python
  prefix=$(python_prefix)
  say "installing a Python with nanobind"
  python3 -c 'import pathlib, sysconfig; pathlib.Path(sysconfig.get_path("include"), "Python.h").stat()' 2>/dev/null ||
    install_packages python3-dev || return 1
  python3 -m venv "$work" || return 1
  # One attempt: builds without a network come by here each time.
  "$work/bin/python3" -m pip install --quiet --disable-pip-version-check --retries 0 \
    ${TANDEM_WHEELS:+--find-links "$TANDEM_WHEELS"} -r "$root/tests/python/requirements.txt" >&2 || return 1
  mv -T "$work" "$prefix" || return 1 # its python3 runs in any folder; other programs there do not
  say "the Python with nanobind is in $prefix"
}

# cuobjdump reads what the kernels take out of a built program, for the test kernel_resources. Toolkits may come without it.
cuda_folders() {
  local folder
  for folder in "${CUDA_HOME:+$CUDA_HOME/bin}" /usr/local/cuda/bin /usr/local/cuda-*/bin; do
    [[ -d $folder ]] && printf '%s\n' "$folder"
  done
  return 0
}

cuobjdump_prefix() { printf '%s/cuobjdump-%s\n' "$deps" "$cuobjdump_version"; }

needs_cuobjdump() {
  [[ $(uname -m) == x86_64 && ! -d $(cuobjdump_prefix) ]] || return 1
  local folders path nvcc
  folders=$(cuda_folders | paste -sd :)
  path=$PATH${folders:+:$folders}
  nvcc=$(PATH=$path type -P nvcc) || return 1
  PATH=$path type -P cuobjdump >/dev/null && return 1
  [[ $("$nvcc" --version 2>/dev/null) == *"release 13."* ]]
}

install_cuobjdump() {
  local work=$1/cuobjdump
  local wheel=nvidia_cuda_cuobjdump-$cuobjdump_version-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl
  mkdir -p "$work/unpacked" "$work/prefix/bin"
  # One attempt: builds without a network come by here each time.
  PIP_RETRIES=0 download "$work" "$wheel" "$cuobjdump_hash" --only-binary :all: "nvidia-cuda-cuobjdump==$cuobjdump_version"
  python3 -m zipfile -e "$work/$wheel" "$work/unpacked" || return 1
  install -m 755 "$work/unpacked/nvidia/cu13/bin/cuobjdump" "$work/prefix/bin/cuobjdump" || return 1
  mv -T "$work/prefix" "$(cuobjdump_prefix)" || return 1
  say "cuobjdump $cuobjdump_version is in $(cuobjdump_prefix)"
}

check() {
  local missing
  mapfile -t missing < <(missing_packages "${packages[@]}")
  ((${#missing[@]})) && say "missing packages: ${missing[*]}"
  system_onednn || [[ -d $(onednn_prefix) ]] || { say "missing: oneDNN $onednn_version"; missing+=(onednn); }
  [[ -d $(onnx_prefix) ]] || { say "missing: ONNX $onnx_version C++ library"; missing+=(onnx); }
  ((${#missing[@]} == 0))
}

with_python=yes
only_onnx=0
case ${1:-} in
  --onnx) only_onnx=1 ;;
  --prefixes)
    system_onednn && echo "onednn=system" || echo "onednn=$(onednn_prefix)"
    echo "onnx=$(onnx_prefix)"
    echo "httplib=$(httplib_prefix)"
    echo "python=$(python_prefix)"
    exit 0
    ;;
  --check) check; exit ;;
  --program) with_python=no ;;
  --developer) packages+=("${developer_packages[@]}") ;;
  "") ;;
  *) sed -n '2,13s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2 ;;
esac

if ((!only_onnx)); then
  [[ $(uname -m) == x86_64 ]] || system_onednn || die "the packaged oneDNN is for x86-64 only: install oneDNN 3 first"
  install_packages "${packages[@]}"
  (install_packages mold) || say "no mold: programs are linked by the compiler's own linker, which takes longer"
fi
mkdir -p "$deps"
exec 9>"$deps/.lock"
flock 9 # two setups at once: the second waits and then finds everything there
work=$(mktemp -d "$deps/.work-XXXXXX")
trap 'rm -rf "$work"' EXIT
((only_onnx)) || system_onednn || install_onednn "$work"
install_onnx "$work"
if [[ ! -d $(httplib_prefix) ]]; then # in a shell of its own: one command needs it
  (install_httplib "$work") || say "no cpp-httplib: this build will have no \`tandem policy page\`"
fi
((!only_onnx)) || exit 0
if [[ $with_python == yes && ! -d $(python_prefix) ]]; then # in a shell of its own: the program needs none of it
  (install_python "$work") || say "no Python with nanobind: the Python package is not built, and its tests do not run"
fi
if needs_cuobjdump; then # in a shell of its own: nothing but one test needs it
  (install_cuobjdump "$work") || say "no cuobjdump: the test kernel_resources will be skipped"
fi
