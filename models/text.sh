# For recipes about text, after recipe.sh: TEXT is the file that TANDEM_TEXT names, else tiny Shakespeare where it is, else this repository's guides.
TEXT=${TANDEM_TEXT:-$TANDEM_SHARED/data/text/tinyshakespeare_input.txt}
if [[ ! -e $TEXT ]]; then
  [[ -z ${TANDEM_TEXT:-} ]] || missing "there is no $TANDEM_TEXT (TANDEM_TEXT names a text)"
  TEXT=$WORK/guides.txt
  mkdir -p "$WORK"
  cat README.md docs/*.md docs/guide/*.md >"$TEXT"
fi
