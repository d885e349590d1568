#!/usr/bin/env bash
# Event files of a run as TensorBoard reads them. Needs the package tensorboard.
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
peer=$(cd tests/check_all && python3 -c 'from common import peer_python; print(peer_python(None))') || exit 1
exec "$peer" tests/check_all/tensorboard_events.py "$@"
