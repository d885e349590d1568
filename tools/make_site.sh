#!/usr/bin/env bash
# Makes a site with a search out of the documents, in build/site; a broken link is an error.
#   TANDEM_SITE_PYTHON   a Python that has tools/site/requirements.txt, instead of an environment in build/site_env
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=${TANDEM_SITE_PYTHON:-build/site_env/bin/python}
if [[ -z ${TANDEM_SITE_PYTHON:-} ]]; then
  [[ -x $python ]] || python3 -m venv build/site_env
  "$python" -m pip install --quiet --disable-pip-version-check --requirement tools/site/requirements.txt
fi
python3 tools/site/pages.py build/site_pages
NO_MKDOCS_2_WARNING=1 "$python" -m mkdocs build --strict --clean --config-file build/site_pages/mkdocs.yml --site-dir "$PWD/build/site"
python3 tools/site/check_site.py build/site
echo "build/site/index.html; for the search: python3 -m http.server --bind 127.0.0.1 --directory build/site"
