#!/usr/bin/env bash
# `tandem init` on thirty networks of the zoo with data in five formats. Needs the packages of models/zoo.
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
peer=$(cd tests/check_all && python3 -c 'from common import peer_python; print(peer_python(None))') || exit 1
"$peer" -c 'import importlib.util, sys; sys.exit(not all(map(importlib.util.find_spec, sys.argv[1:])))' torch torchvision timm transformers skl2onnx ||
  { echo "skipped: this Python lacks torch, torchvision, timm, transformers or skl2onnx"; exit 0; }
exec "$peer" tests/check_all/init_zoo.py "$@"
