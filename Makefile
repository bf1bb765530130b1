# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Every target is one script in dev/ or lab/; CHECKS are the sessions of noxfile.py, which need no lab.
# NPU_LAB=1..99 chooses another lab than the checkout's own.

.DEFAULT_GOAL := help
CHECKS := unit sanity node-agent lab-sim python38 simulate lint build docs-lint ee ansible-newest
.PHONY: help demo lab lab-down test test-all venv lock settings dashboards requirements proofs format types kubernetes-core ansible-matrix arm64 molecule lab-test maintenance-test crash-test matrix upstream bench bench-fleet $(CHECKS)

help: ## show this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 26

demo: ## set up everything, start the lab, run install on it, show the result
	@dev/demo

lab: ## start the lab, or repair it
	@dev/packages
	@lab/lab up

lab-down: ## remove the lab
	@lab/lab down

test: ## run what CI runs: everything without a lab, and the core on one lab
	@dev/test

test-all: ## run everything, in hours: NPU_SHARD=2/4 runs the second of four parts
	@dev/test test-all

venv: ## create .venv with Ansible and all tools
	@dev/venv

lock: ## update requirements-dev.lock
	@dev/lock

$(CHECKS): venv
	@.venv/bin/nox --session $@

unit: ## test the library and the boot scripts, without a lab
node-agent: ## test the node agent
lab-sim: ## test the simulated hardware of the lab
python38: ## test what runs on hosts, with Python 3.8
sanity: ## run ansible-test sanity
simulate: ## simulate fleets and their mishaps: SEEDS=100000 many, SEED=1 tells one as a story
lint: ## run shellcheck, ruff, yamllint, ansible-lint and mypy
docs-lint: ## check documentation, changelog and links
build: ## build the collection and check it with Galaxy's importer
ee: ## test the requirements of the execution environment
ansible-newest: ## run the newest ansible-core that a Python of this machine runs

settings: venv ## update docs/settings.md and the defaults of the roles
	@dev/settings_page

dashboards: venv ## update monitoring/dashboards
	@dev/dashboards

requirements: venv ## update the table of versions in README.md
	@dev/requirements_table

proofs: venv ## update the table of proofs in CONTRIBUTING.md
	@dev/proofs_table

format: venv ## format all Python
	@dev/format

kubernetes-core: venv ## test with the lowest and the newest kubernetes.core that is allowed
	@dev/kubernetes-core

ansible-matrix: venv ## run the checks with each ansible-core and Python that is supported
	@dev/ansible-matrix $(ARGS)

arm64: venv ## test what runs on hosts on an emulated arm64 host
	@dev/arm64

types: venv ## run only mypy
	@dev/types

molecule: venv ## run the molecule scenarios on the running lab
	@dev/molecule

lab-test: venv ## test bad input and interruptions on the running lab
	@dev/lab-test

maintenance-test: venv ## test what can interrupt a rollout on the running lab
	@dev/maintenance-test

crash-test: venv ## kill the controller at every call of an upgrade and of a recovery on the running lab
	@NPU_CRASH=all dev/maintenance-test -s -k "every_crash_is_survived or every_crash_of_a_recovery or where_the_slots_are_made"

matrix: venv ## run molecule's default scenario with each Kubernetes and containerd that the lab knows
	@dev/matrix

upstream: ## run the molecule scenarios with MindCluster's own programs, built from their source
	@dev/upstream

bench: venv ## measure install, upgrade, plan and node agent
	@dev/bench

bench-fleet: venv ## measure an upgrade of a large fleet against a real API server
	@dev/bench-fleet $(ARGS)
