#!/usr/bin/env bash
# Adapters as PEFT loads them: those of a convolutional network, of a BERT from Hugging Face's folder, and of the models of docs/hugging_face.md. Needs peft,
# transformers and onnxruntime.
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
peer=$(cd tests/check_all && python3 -c 'from common import peer_python; print(peer_python(None))') || exit 1
"$peer" tests/check_all/peft_adapters.py "$@" || exit
"$peer" -c 'import peft, transformers' 2>/dev/null || exit 0 # the line above has said so
exec "$peer" tests/check_all/peft_models.py
