#!/usr/bin/env bash
# Builds Tandem for conda: everything but ONNX's C++ library comes from packages of conda.
set -euo pipefail
export TANDEM_DEPS=$PWD/deps CMAKE_PREFIX_PATH=$PREFIX
tools/setup.sh --onnx
cmake -S . -B build-conda -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$PREFIX" -DCMAKE_INSTALL_LIBDIR=lib \
  -DTANDEM_ONEDNN=system -DTANDEM_TESTS=OFF -DTANDEM_BENCH=OFF -DTANDEM_CUDA=OFF
cmake --build build-conda --target tandem_installed
cmake --install build-conda
