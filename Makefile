# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Every target is one script in dev/ or lab/; CHECKS are the sessions of noxfile.py, which need no lab. NPU_LAB=1..99 chooses another lab than the checkout's own.

.DEFAULT_GOAL := help
CHECKS := unit sanity node-agent python38 lint build docs-lint ee
.PHONY: help demo lab lab-down test venv lock format types molecule lab-test maintenance-test crash-test bench $(CHECKS)

help: ## show this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 26

demo: ## from nothing: set up, start the lab, run install on it, show the result
	@dev/demo

lab: ## start the lab, or repair it
	@dev/packages
	@lab/lab up

lab-down: ## remove the lab
	@lab/lab down

test: ## everything CI runs
	@dev/test

venv: ## .venv with Ansible and all tools, made once per set of requirements
	@dev/venv

lock: ## write requirements-dev.lock anew
	@dev/lock

$(CHECKS): venv
	@.venv/bin/nox --session $@

unit: ## the library and the boot scripts, without a lab
node-agent: ## the tests of the node agent
python38: ## what runs on hosts, with Python 3.8
sanity: ## ansible-test sanity
lint: ## shellcheck, ruff, yamllint, ansible-lint, types
docs-lint: ## documentation, changelog, links
build: ## the collection archive, and what Galaxy's importer says of it
ee: ## what the execution environment lists, and whether it suffices

format: venv ## format all Python
	@dev/format

types: venv ## mypy alone
	@dev/types

molecule: venv ## the molecule scenarios, on the running lab
	@dev/molecule

lab-test: venv ## bad input and interruptions, on the running lab
	@dev/lab-test

maintenance-test: venv ## what can interrupt a rollout, on the running lab
	@dev/maintenance-test

crash-test: venv ## the controller dies at every call of an upgrade and of a recovery, on the running lab; an hour
	@NPU_CRASH=all dev/maintenance-test -s -k "every_crash_is_survived or every_crash_of_a_recovery or where_the_slots_are_made"

bench: venv ## what install, upgrade, plan and node agent cost, beside what they are measured by
	@dev/bench
