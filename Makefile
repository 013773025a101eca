# `make` lists what there is. The scripts do the work, so that each can be called by itself.
.DEFAULT_GOAL := help
FUZZ_CASES ?= 1000000

.PHONY: fuzz help build bench docs emulator fmt lint run template test

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Build the command line without AWS and play the demo
	cargo run --profile demo --package adjourn --no-default-features -- demo

test: ## Every test, with the emulator of AWS and all else that they need set up first
	scripts/test

build: ## The command line with everything in it: target/release/adjourn
	cargo build --release --package adjourn

fmt: ## Format the sources
	cargo fmt --all

lint: ## Formatting, clippy, and the template
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- --deny warnings
	scripts/template-check

bench: ## The benchmarks, as a table of ratios and instruction counts
	scripts/bench

docs: ## Write docs/providers.md from the catalogue
	scripts/docs

emulator: ## A local AWS until Ctrl-C; prints its URL
	@scripts/emulator sh -c 'echo "$$AWS_ENDPOINT_URL"; exec tail -f /dev/null'

template: ## Check template.yaml with cfn-lint and sam validate
	scripts/template-check

fuzz: ## The property tests of the reader and the envelope with many cases: FUZZ_CASES, a million unless said
	PROPTEST_CASES=$(FUZZ_CASES) cargo test --release --package adjourn-core envelope
	PROPTEST_CASES=$(FUZZ_CASES) cargo test --release --package adjourn-http --test corpus properties
