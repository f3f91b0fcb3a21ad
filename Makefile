# Two commands for a fresh machine: `make demo` and `make test`. Each does its whole set-up.
PYTHON ?= python3
BIN := .venv/bin
export PYTHON

.PHONY: help setup demo test lint bench bench-lab bench-cluster bench-watch soak kernel-check golden generated pages screenshots docs packages zipapp release-check lock clean

help:
	@echo 'make demo    predict the loss of a dead master, then measure it on this kernel'
	@echo 'make test    every check: format, lint, types, imports, unit, property, golden, lab'
	@echo 'make bench   speed and memory beside what a user has today'
	@echo 'make bench-lab   what the lab takes, beside scapy and restoring'
	@echo 'make bench-cluster   what reading a whole cluster takes, and asking it'
	@echo 'make bench-watch   what looking at a node every so often takes'
	@echo 'make soak    look for what nobody has found yet: new seeds, for MINUTES=60'
	@echo 'make kernel-check   random rulesets of iptables and nft and packets, N=10000 of each'
	@echo 'make golden  rewrite the golden files; review the diff'
	@echo 'make generated  rewrite completion, manual pages, pictures and the inventory'
	@echo 'make pages   what pages of --format html carry, into analyzer/data/pages (needs npm)'
	@echo 'make screenshots   pictures of pages in docs/screenshots (needs chromium); look at them'
	@echo 'make docs    the site, into site/'
	@echo 'make packages   wheel, sdist, kubeodds.pyz and the plugin of krew, into dist/'
	@echo 'make zipapp  kubeodds.pyz alone, into dist/'
	@echo 'make release-check   whether this commit can be released, and what is left to do'
	@echo 'make lock    resolve the lock files anew (needs uv)'

setup:
	@.ci/setup

demo: setup
	@.ci/demo

test: setup
	@$(BIN)/python -m tests.support.quick_check

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --config pyproject.toml

# BENCH='--rules 1000000' or BENCH=dump.txt for others than 1,000 and 100,000 rules.
bench: setup
	@$(BIN)/python -m netns_lab.bench $(BENCH)

# CASES='engine scapy' for some; KUBEODDS_CAPTURES names the folder of larger captures.
bench-lab: setup
	@PYTHONPATH=.:netns-lab $(BIN)/python -m netns_lab.bench_lab $(CASES)

# CASES='further stored' for some.
bench-cluster: setup
	@PYTHONPATH=.:netns-lab $(BIN)/python -m netns_lab.bench_cluster $(CASES)

# WATCH='--services 1000 --looks 100' for a smaller node.
bench-watch: setup
	@PYTHONPATH=.:netns-lab $(BIN)/python -m netns_lab.bench_watch $(WATCH)

# For MINUTES, with SEED for other seeds' seed; ONLY=kernel for parts whose names begin so;
# ONLY=properties PROPERTY=by_source for properties whose tests' names have that.
soak: setup
	@$(BIN)/python -m tests.support.soak --minutes $(or $(MINUTES),60) \
	    $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only '$(ONLY)') \
	    $(if $(PROPERTY),--property '$(PROPERTY)')

# N rulesets for each backend of iptables and for nft; SEED for others than last time's.
kernel-check: setup
	for backend in legacy nft; do \
	    PYTHONPATH=netns-lab $(BIN)/python -m tests.support.lab.kernel_check --rulesets $(or $(N),200) \
	        --seed $(or $(SEED),0) --backend $$backend || exit 1; \
	    PYTHONPATH=netns-lab $(BIN)/python -m tests.support.lab.kernel_check --foreign \
	        --rulesets $(or $(N),200) --seed $(or $(SEED),0) --backend $$backend || exit 1; \
	done
	PYTHONPATH=netns-lab $(BIN)/python -m tests.support.lab.nft_check --rulesets $(or $(N),200) \
	    --seed $(or $(SEED),0)

golden: setup
	$(BIN)/python -m pytest tests/golden --update-golden

generated: setup
	$(BIN)/python -m release.generated

# Versions are those of release/pages/package-lock.json; a test holds that this gives what is there.
pages:
	cd release/pages && npm ci --ignore-scripts --silent && npm run --silent build

screenshots: export PACKAGES_REQUIRED := 1
screenshots: setup
	$(BIN)/python -m release.screenshots

# With mkdocs-material, which the quick check does without.
docs release-check: export PACKAGES_REQUIRED := 1
docs: export NO_MKDOCS_2_WARNING := 1
docs: setup
	$(BIN)/python -m mkdocs build --strict --quiet

release-check: setup
	@$(BIN)/python -m release.check $(if $(FINAL),--final)

# The time that packages tell is that of the last commit: the same commit gives the same bytes.
packages zipapp: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 315532800)
packages: setup zipapp
	$(BIN)/python -m hatchling build -d dist
	$(BIN)/python -m release.krew dist $(if $(URI),--uri '$(URI)')

# Nothing but Python is needed.
zipapp:
	$(PYTHON) -m release.zipapp dist/kubeodds.pyz

lock:
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header \
	    --group test --group lint --group build pyproject.toml -o requirements.lock
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header \
	    --group release -c requirements.lock pyproject.toml -o requirements-release.lock
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header \
	    --all-extras -c requirements.lock pyproject.toml -o requirements-extras.lock
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header \
	    --group lab -c requirements.lock pyproject.toml -o requirements-lab.lock

clean:
	rm -rf .venv dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
