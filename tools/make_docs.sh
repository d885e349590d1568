#!/usr/bin/env bash
# Writes the pages and schemas of docs/ that the program itself generates, so that they cannot disagree with it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# As the build folder is configured; a new configuration would build everything again.
if [[ -f build/CMakeCache.txt ]]; then
  cmake --build build --target test_training test_placement test_operators
else
  tools/build.sh cpu test_training test_placement test_operators
fi

# Every key of train.toml and policy.toml with type, default and meaning, from the tables that also check the files.
TANDEM_CONFIG_PAGE=docs/train_toml.md build/tests/test_training --gtest_filter='ConfigKeys.ThePage*' --gtest_brief=1
echo docs/train_toml.md
# The structs of the C++ library with the same keys; the next build takes them.
TANDEM_CONFIG_HEADER=include/tandem/train_config.h TANDEM_CONFIG_MEMBERS=api/train/train_config_members.inl \
  build/tests/test_training --gtest_filter='ConfigKeys.TheStructs*' --gtest_brief=1
echo include/tandem/train_config.h api/train/train_config_members.inl
TANDEM_LOSSES_PAGE=docs/losses.md build/tests/test_training --gtest_filter='ListOfLosses.ThePage*' --gtest_brief=1
echo docs/losses.md
TANDEM_METRICS_PAGE=docs/metrics.md build/tests/test_training --gtest_filter='ListOfMetrics.ThePage*' --gtest_brief=1
echo docs/metrics.md
TANDEM_POLICY_PAGE=docs/policy_toml.md build/tests/test_placement --gtest_filter='PolicyKeys.ThePage*' --gtest_brief=1
echo docs/policy_toml.md
# The JSON Schemas of both files, for editors.
TANDEM_CONFIG_SCHEMA=docs/schema/train.schema.json build/tests/test_training --gtest_filter='ConfigKeys.TheSchemaInDocs*' --gtest_brief=1
echo docs/schema/train.schema.json
TANDEM_POLICY_SCHEMA=docs/schema/policy.schema.json build/tests/test_placement --gtest_filter='PolicyKeys.TheSchemaInDocs*' --gtest_brief=1
echo docs/schema/policy.schema.json

# Python functions with the same keys as arguments.
cmake --build build --target tandem_tool
python3 tools/generate_python_options.py build/tandem
if [[ -d build/python ]]; then
  cmake --build build --target tandem_python_stub
  echo python/src/tandem_train/_tandem.pyi
fi

# Operators, gradients, kernels: written by the test that checks that none of them is missing.
TANDEM_UPDATE_DOCS=1 build/tests/test_operators --gtest_filter='Completeness*' --gtest_brief=1
echo docs/operators.md
