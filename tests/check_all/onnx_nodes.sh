#!/usr/bin/env bash
# All of ONNX's node cases, those included that are too large for a fixture; what does not pass stands in
# tests/data/onnx_node/not_passed.txt, which TANDEM_UPDATE_DOCS=1 writes.
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
peer=$(cd tests/check_all && python3 -c 'from common import peer_python; print(peer_python(None))') || exit 1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
"$peer" tests/scripts/dump_onnx_node_tests.py "$folder" || exit 1
TANDEM_ONNX_NODE_TESTS=$folder build/tests/test_importer --gtest_filter='NodeTests.*'
