# What the AWS backend adds to the Makefile. `include`d there; needs $(CARGO) from it.

CARGO ?= cargo
AWS_LOCAL_PORT ?= 4566
AWS_EXAM_PORT ?= 4577
AWS_LOCAL_CONFIG ?= waybill.example.toml
# Functions for this machine: what the tests have compiled already. `quick` is optimised.
AWS_LOCAL_PROFILE ?= dev
AWS_LOCAL_BINARIES := $(abspath $(or $(CARGO_TARGET_DIR),target))/$(patsubst dev,debug,$(AWS_LOCAL_PROFILE))

# What `make measure` measures: what `make package` leaves for this machine's kind.
PACKAGES ?= target/package/$(patsubst aarch64,arm64,$(shell uname -m))

# An emulator of DynamoDB that a million deliveries do not slow down (it holds them in memory, 2.5 GiB); and
# how many have ended in `bench-aws`.
DYNAMO := .cache/dynoxide
DYNAMO_PORT ?= 4588
HISTORY ?= 10000 1000000

# For how long functions are killed while events flow, and for how long the ledger cannot be reached.
CRASH_S ?= 300
OUTAGE_S ?= 60

AWS_VENV := .cache/aws-venv
CHECK_VENV := .cache/check-venv
PACKAGE_VENV := .cache/package-venv
TERRAFORM_IN := infra/local/terraform.sh
FUNCTIONS := ingest consumer reconciler
FUNCTION_PACKAGES := $(foreach function,$(FUNCTIONS),--package waybill-$(function))

.PHONY: test-infra check-infra functions command-line-aws next-version aws-local aws-local-down test-aws crashes-aws costs bench-aws measure package

test-infra: ## Terraform: formatting, validity, and its tests with a mocked provider (offline)
	$(TERRAFORM_IN) infra fmt -check -diff -recursive
	$(TERRAFORM_IN) infra init -backend=false -input=false -no-color >/dev/null
	$(TERRAFORM_IN) infra validate -no-color
	$(TERRAFORM_IN) infra/environments/account init -backend=false -input=false -no-color >/dev/null
	$(TERRAFORM_IN) infra/environments/account validate -no-color
	$(TERRAFORM_IN) infra/environments/local init -backend=false -input=false -no-color >/dev/null
	$(TERRAFORM_IN) infra/environments/local validate -no-color
	$(TERRAFORM_IN) infra test -no-color

check-infra: $(CHECK_VENV)/installed ## Checkov over the Terraform; every skip has its reason there
	$(CHECK_VENV)/bin/checkov --directory infra --skip-path infra/environments/local \
		--framework terraform --skip-download --compact --quiet

functions: ## Build the functions for this machine
	$(CARGO) build --locked --profile $(AWS_LOCAL_PROFILE) $(FUNCTION_PACKAGES)

command-line-aws: ## Build the command line with both backends
	$(CARGO) build --locked --profile $(AWS_LOCAL_PROFILE) --package waybill --features aws

next-version: ## Build the consumer of a version that is not there yet, which the rehearsal of a rollback needs
	$(CARGO) build --locked --profile $(AWS_LOCAL_PROFILE) --package waybill-tests-aws --features next-version \
		--bin waybill-consumer-next

aws-local: functions $(AWS_VENV)/installed ## Waybill on a local AWS without Docker, or on AWS_ENDPOINT_URL
	$(AWS_VENV)/bin/python infra/local/local_aws.py up --port $(AWS_LOCAL_PORT) \
		--binaries $(AWS_LOCAL_BINARIES) --config $(AWS_LOCAL_CONFIG)

aws-local-down: $(AWS_VENV)/installed ## End the local AWS
	$(AWS_VENV)/bin/python infra/local/local_aws.py down --port $(AWS_LOCAL_PORT)

test-aws: functions command-line-aws next-version $(AWS_VENV)/installed ## On a local AWS: exams of ledger, queue and office, costs, deployed functions, command line, rehearsals
	$(AWS_VENV)/bin/python infra/local/local_aws.py bare --port $(AWS_EXAM_PORT) -- \
		$(CARGO) test --locked --package waybill-tests-aws --features aws-local -- --test-threads 4
	cd tests/end_to_end_aws && WAYBILL_FUNCTIONS=$(AWS_LOCAL_BINARIES) \
		../../$(AWS_VENV)/bin/python -m unittest -v

crashes-aws: functions command-line-aws $(AWS_VENV)/installed ## Deployed functions killed, hung and cut off from their ledger for minutes, counted: make crashes-aws CRASH_S=300 OUTAGE_S=60
	cd tests/end_to_end_aws && WAYBILL_FUNCTIONS=$(AWS_LOCAL_BINARIES) WAYBILL_CRASH_S=$(CRASH_S) \
		WAYBILL_OUTAGE_S=$(OUTAGE_S) ../../$(AWS_VENV)/bin/python -m unittest -v test_crashes

costs: $(AWS_VENV)/installed ## Requests, consumed capacity and cost per delivered event, on a local AWS, into docs/BENCHMARKS.md
	$(AWS_VENV)/bin/python infra/local/local_aws.py bare --port $(AWS_EXAM_PORT) -- \
		$(CARGO) test --locked --quiet --package waybill-tests-aws --features aws-local --test costs -- --nocapture >.cache/costs.md || { cat .cache/costs.md; exit 1; }
	$(CARGO) run --locked --quiet --package waybill-bench -- costs <.cache/costs.md

bench-aws: $(DYNAMO)/bin/dynoxide ## What a round of the reconciler costs on DynamoDB, by how much history: make bench-aws HISTORY="10000 1000000"
	@$(DYNAMO)/bin/dynoxide serve --host 127.0.0.1 --port $(DYNAMO_PORT) & \
	emulator=$$!; trap "kill $$emulator" EXIT; \
	AWS_ENDPOINT_URL=http://127.0.0.1:$(DYNAMO_PORT) AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test \
	AWS_REGION=us-east-1 WAYBILL_HISTORY="$(HISTORY)" \
		$(CARGO) test --locked --quiet --package waybill-tests-aws --features long --test history \
		-- --nocapture

measure: ## Size, cold start, CPU per record and memory of the packaged functions: make measure PACKAGES=…
	python3 infra/local/measure.py $(PACKAGES)

package: $(PACKAGE_VENV)/installed ## Zips for Lambda, both architectures, under target/package
	infra/local/package.sh $(PACKAGE_VENV) $(FUNCTIONS)

$(AWS_VENV)/installed: infra/requirements.txt
	python3 -m venv $(AWS_VENV)
	$(AWS_VENV)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

$(DYNAMO)/bin/dynoxide:
	$(CARGO) install --quiet --locked --version 3.2.0 --no-default-features \
		--features native-sqlite,http-server,cli --root $(DYNAMO) dynoxide-rs

$(CHECK_VENV)/installed: infra/requirements-check.txt
	python3 -m venv $(CHECK_VENV)
	$(CHECK_VENV)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

$(PACKAGE_VENV)/installed: infra/requirements-package.txt
	python3 -m venv $(PACKAGE_VENV)
	$(PACKAGE_VENV)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@
