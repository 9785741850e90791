# SPDX-License-Identifier: BSD-3-Clause
#
# The front door. CMake does the work; see CMakePresets.json for the builds.
#
#   make            build (build/release)
#   make demo       install what is missing, build, what programs gain, in 2 to 3 minutes (DEMO_ARGS="...")
#   make check      install what is missing, run every gate and test; ends with "N passed, N failed"
#   make check-debian13  build and test in Debian 13, which mmdebstrap makes (root; MIRROR=URL)
#   make kmod       build the optional kernel module in build/kmod (KDIR=the kernel's headers)
#   make kmod-check install what is missing, test the module, and MPI programs over it, in guests of
#                   QEMU (KMOD_PARTS="debug mpi faults kasan arm64 guest static locks": only these;
#                   kernel/guest/check.sh has them, and more)
#   make soak       random mixes of everything under both MPIs, 10 minutes (SOAK_SECONDS=600, SEED=)
#   make bench      install what is missing, our benchmark, stock against onecopy (BENCH_ARGS="...")
#   make coverage   which lines of src/ and mpi/ the tests run; needs gcovr (COVERAGE_ARGS="-L unit")
#   make lint       the gates of tests/gates
#   make fmt        format the sources with clang-format (FILES="...": only those)
#   make install    install build/release (PREFIX=/usr/local, DESTDIR=)
#   make clean      remove build/
#   make help       this list

BENCH_ARGS ?=
DEMO_ARGS ?=
COVERAGE_ARGS ?=
SOAK_SECONDS ?= 600
SEED ?=
KDIR ?=
KMOD_PARTS ?=
FILES ?=
PREFIX ?= /usr/local
release := build/release

.PHONY: all setup demo check check-debian13 kmod kmod-check coverage soak bench lint fmt install clean help
all: $(release)/build.ninja
	@test -f $(release).log && ! grep -q '^-- .* left out: ' $(release).log || $(configure)
	@cmake --build $(release)
	@sed -n 's/^-- \(.* left out: \)/onecopy: \1/p' $(release).log

# Again where something was left out: what it needs may be here now.
configure = { cmake --preset release >$(release).log.new 2>&1 && mv $(release).log.new $(release).log; } || \
	    { cat $(release).log.new >&2; exit 1; }
$(release)/build.ninja:
	@command -v cmake >/dev/null && command -v ninja >/dev/null || { \
		echo "onecopy: cmake and ninja are needed to build; run cmake/setup-debian.sh" \
		     "(or 'make check', which does) to install them" >&2; exit 1; }
	@$(configure)

$(release)/build.ninja: | build
build:
	@mkdir -p build

setup:
	@cmake/setup-debian.sh

demo: setup
	@$(MAKE) --no-print-directory all
	@$(release)/tools/onecopy/onecopy bench programs $(DEMO_ARGS)

check: setup
	@cmake/check.sh

# The builds of this system's have no part in it.
check-debian13:
	@cmake/check-debian13.sh

kmod:
	@kernel/build.sh build/kmod/module $(KDIR)

kmod-check: setup
	@kernel/guest/check.sh build/kmod $(KMOD_PARTS)

coverage: setup
	@cmake/coverage.sh $(COVERAGE_ARGS)

# Each prints its seed and takes its share of the time; the first that fails ends it.
soak_jobs := "soak 2" "soak 4" "--mpich soak 2" "--mpich soak 3"
soak: setup
	@$(MAKE) --no-print-directory all
	@set -e; for job in $(soak_jobs); do \
		echo "oc_mpi_driver $$job"; \
		$(release)/tests/mpi/oc_mpi_driver $$job $$(($(SOAK_SECONDS) / 4)) $(SEED); \
	done

bench: setup
	@$(MAKE) --no-print-directory all
	@$(release)/tools/onecopy/onecopy bench collectives \
		--out bench-out/$$(date -u +%Y-%m-%dT%H%M%SZ) $(BENCH_ARGS)

lint:
	@tests/gates/run-all.sh

fmt:
	@tests/gates/format.sh --fix $(FILES)

install: all
	@cmake --install $(release) --prefix $(PREFIX)

clean:
	@rm -rf build

help:
	@sed -n 's/^#   //p' Makefile
