# What the recipes share: `source`d by models/NAME/run.sh, which then says what it makes, what is short about a short training, and trains.
#
#   models/NAME/run.sh [--full] [--make | --arguments] [key=value …]
#
#   (nothing)      makes the model and the data that are missing, trains for less than a minute, evaluates, exports and verifies
#   --full         the whole training that train.toml describes
#   --make         only makes what is missing
#   --arguments    that, and prints what the training takes: `env:NAME=VALUE`, then the arguments of `tandem train`, each on a line
#   key=value      of train.toml, as on the command line of `tandem train`
#
# TANDEM_BINARY names another program than build/tandem, TANDEM_MODELS another folder for models and data than build/models, TANDEM_RUNS another
# one for runs than build/recipes, TANDEM_SHARED the folder of large data, TANDEM_PEER_PYTHON a Python with the packages of bench/peers/requirements.txt.
# Exit code 77: something is missing that a recipe cannot make; a line says what.
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
NAME=$(basename "$(cd "$(dirname "${BASH_SOURCE[1]}")" && pwd)")
cd "$ROOT"
TANDEM=${TANDEM_BINARY:-build/tandem}
TANDEM_MODELS=$(realpath -m "${TANDEM_MODELS:-build/models}")
TANDEM_SHARED=$(realpath -m "${TANDEM_SHARED:-../shared}")
export TANDEM_MODELS TANDEM_SHARED
WORK=$TANDEM_MODELS/$NAME # what the recipe makes
FULL=0 ONLY='' SHORT=() KEYS=() RUN=''
for argument in "$@"; do
  case $argument in
    --full) FULL=1 ;;
    --make | --arguments) ONLY=$argument ;;
    -h | --help) sed -n '/^#   models/,/^# Exit/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *=*) KEYS+=("$argument") ;;
    *) echo "models/$NAME/run.sh: expected --full, --make, --arguments or key=value, got $argument" >&2; exit 2 ;;
  esac
done

missing() { # TEXT: ends the recipe as one that cannot run here
  echo "skipped: $NAME: $1" >&2
  exit 77
}

shared() { # PATH: its place in the folder of large data
  [[ -e $TANDEM_SHARED/$1 ]] || missing "there is no $TANDEM_SHARED/$1 (TANDEM_SHARED names the folder of large data)"
}

python_with() { # PACKAGES…: sets PYTHON to an interpreter that has them; none of them is imported, which takes long
  local candidate find='import importlib.util, sys; sys.exit(not all(map(importlib.util.find_spec, sys.argv[1:])))'
  for candidate in "${TANDEM_PEER_PYTHON:-}" "${XDG_CACHE_HOME:-$HOME/.cache}/tandem/peer-venv/bin/python" python3; do
    [[ -n $candidate ]] && "$candidate" -c "$find" "$@" 2>/dev/null && PYTHON=$candidate && return
  done
  local more='' # what the pinned list does not have
  [[ " $* " == *' transformers '* ]] && more=' transformers'
  missing "it needs a Python with $* (python3 -m pip install -r bench/peers/requirements.txt$more, or name one in TANDEM_PEER_PYTHON)"
}

make_by() { # FILE SCRIPT [ARGUMENTS…]: runs models/SCRIPT where FILE is missing or older than the script
  local file=$1 script=models/$2
  shift 2
  [[ $file -nt $script ]] && return
  echo "== $script $*" >&2
  OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} "$PYTHON" "$script" "$@"
  touch "$file"
}

short() { SHORT=("$@"); } # KEYS…: what a training without --full sets

train() { # trains, evaluates and exports; RUN is the run directory
  local keys=()
  ((FULL)) || keys=("${SHORT[@]}")
  keys+=("${KEYS[@]}")
  [[ $ONLY == --make ]] && exit 0
  if [[ $ONLY == --arguments ]]; then
    env | grep '^TANDEM_' | sed 's/^/env:/'
    printf '%s\n' "models/$NAME/train.toml" "${keys[@]}"
    exit 0
  fi
  local runs=${TANDEM_RUNS:-build/recipes} number=1
  while RUN=$(printf '%s/%s-%04d' "$runs" "$NAME" $number) && [[ -e $RUN ]]; do ((++number)); done
  "$TANDEM" train "models/$NAME/train.toml" --run-dir "$RUN" "${keys[@]}"
  "$TANDEM" eval "$RUN"
  # onnxruntime computes the exported model as well, where the Python that made it has onnxruntime.
  PATH=$(dirname "$(command -v "$PYTHON")"):$PATH "$TANDEM" export "$RUN" --to "$RUN/$NAME.onnx" --verify "$@"
}
