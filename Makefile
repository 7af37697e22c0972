# SPDX-License-Identifier: MIT
# Copyright the cumem authors
#
# A face for people; CMakeLists.txt builds, tools/ does the work.
#   make demo PYTHON=python3.12 TORCH="torch==2.13.0"    both are optional

export PYTHON TORCH

.PHONY: help demo test growth bench clean

help:
	@echo 'make demo   set everything up and see cumem find a real leak'
	@echo 'make test   set everything up and run all tests'
	@echo 'make growth run all growth samples; prints recall and false alarms'
	@echo 'make bench  measure; results go to bench/results/'
	@echo 'make clean  remove what these made (.venv, build, demo)'

demo:
	@tools/setup.sh demo
	@tools/demo.sh

test:
	@tools/setup.sh test
	@tools/test.sh

growth:
	@tools/setup.sh test
	@.venv/bin/python tests/growth_samples.py

bench:
	@tools/setup.sh demo
	@tools/bench.sh

clean:
	rm -rf .venv build demo
