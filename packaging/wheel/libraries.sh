#!/usr/bin/env bash
# Makes what wheels are linked with and no package of Debian holds in that form:   packaging/wheel/libraries.sh TO
#
# Needs zig of its Python package in PATH. TO gets
#   glibc/   what the linker needs of glibc 2.28, as zig has it; the compiler stays the one of this machine
#   openmp/  a libgomp of few functions (openmp.c): GCC's own of this machine needs glibc 2.34
#   lib/     static libraries whose code may be part of a shared library; Debian's own may not
set -euo pipefail
to=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export SOURCE_DATE_EPOCH=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -rf "$to"
mkdir -p "$to/glibc" "$to/openmp" "$to/lib"

# zig writes these files while it links a program.
export ZIG_GLOBAL_CACHE_DIR=$work/zig ZIG_LOCAL_CACHE_DIR=$work/zig
echo 'int main(void) { return 0; }' >"$work/empty.c"
python-zig cc -target x86_64-linux-gnu.2.28 "$work/empty.c" -o "$work/empty"
for name in libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1 libld.so.2 libc_nonshared.a crt1.o; do
  find "$work/zig/o" -name "$name" -exec cp {} "$to/glibc/" \;
done
cd "$to/glibc"
for name in m.so.6 dl.so.2 pthread.so.0 rt.so.1; do
  ln -s "lib$name" "lib${name%.so.*}.so"
done
mv crt1.o Scrt1.o
mv libld.so.2 ld-linux-x86-64.so.2
gcc -O2 -fPIC -c "$here/newer_functions.c" -o "$work/newer_functions.o"
ar rD libc_nonshared.a "$work/newer_functions.o"
echo 'GROUP ( libc.so.6 libc_nonshared.a AS_NEEDED ( libpthread.so.0 libdl.so.2 ld-linux-x86-64.so.2 ) )' >libc.so
gcc -O2 -fPIC -shared -nostdlib -Wl,-soname,libgomp.so.1 -Wl,--version-script="$here/openmp.map" \
  "$here/openmp.c" -o "$to/openmp/libgomp.so.1"

# Sources of Debian; the newest of those that can be had.
cd "$work"
mkdir -p lists/partial cache sources
sed 's/^Types: deb$/Types: deb-src/' /etc/apt/sources.list.d/debian.sources >sources/debian.sources
apt=(-q -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$work/sources" -o Dir::State::Lists="$work/lists"
  -o Dir::Cache="$work/cache" -o APT::Sandbox::User=root)
apt-get "${apt[@]}" update
source_of() { # NAME
  local version
  for version in $(apt-cache "${apt[@]}" showsrc --only-source "$1" | sed -n 's/^Version: //p' | sort -rV); do
    apt-get "${apt[@]}" source "$1=$version" && return
  done
  return 1
}
build() { # NAME TARGET CMAKE-ARGUMENTS…
  local name=$1 target=$2 source
  shift 2
  source_of "$name"
  source=$(find "$work" -mindepth 1 -maxdepth 1 -type d -name "$name-*")
  cmake -S "$source" -B "$work/$name" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DBUILD_SHARED_LIBS=OFF \
    -DCMAKE_C_FLAGS="-ffile-prefix-map=$source=$name" -DCMAKE_CXX_FLAGS="-ffile-prefix-map=$source=$name" "$@"
  cmake --build "$work/$name" --target "$target"
}
# The headers of protobuf are those that Debian has installed.
build protobuf libprotobuf -Dprotobuf_BUILD_TESTS=OFF -Dprotobuf_BUILD_PROTOC_BINARIES=OFF -Dprotobuf_WITH_ZLIB=OFF
build fmtlib fmt -DFMT_TEST=OFF -DFMT_DOC=OFF
cp "$work/protobuf/libprotobuf.a" "$work/fmtlib/libfmt.a" "$to/lib/"
# These are Debian's own but for the place of one variable, which code of a shared library may not assume.
for name in jpeg png16; do
  objcopy --redefine-sym stderr=portable_stderr "$(gcc -print-file-name=lib$name.a)" "$to/lib/lib$name.a"
done
