# The one-word commands. CMake and the scripts in tools/ do the work.
.PHONY: all build setup test check check-all tidy format bench docs site clean

all: build

setup:
	tools/setup.sh --developer

build:
	tools/build.sh cpu

test: # the quick tests
	tools/test.sh cpu

check: # formatting, include borders, file sizes, plain English: seconds, no build
	tools/check.sh

check-all: check # everything: sanitizers, long trainings, full-size comparisons; hours
	tools/check_all.sh

tidy: build
	tools/tidy.sh

format:
	tools/check.sh --fix

bench: # micro-benchmarks; the comparison with other engines is described in bench/README.md
	tools/build.sh cpu benches
	@for program in build/bench/bench_*; do if [ -x "$$program" ]; then "$$program" || exit 1; fi; done

docs: # the pages of docs/, and the Python files of options, that come out of the program itself
	tools/make_docs.sh

site: # the documents as a site with a search, in build/site
	tools/make_site.sh

clean:
	rm -rf build build-*
