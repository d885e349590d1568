#!/usr/bin/env bash
# Adapters as PEFT loads them: those of a convolutional network and of a BERT from Hugging Face's folder. Needs peft, transformers and onnxruntime.
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
peer=$(cd tests/check_all && python3 -c 'from common import peer_python; print(peer_python(None))') || exit 1
exec "$peer" tests/check_all/peft_adapters.py "$@"
