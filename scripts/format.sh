#!/usr/bin/env bash
# Formats everything; `format.sh --check` only says what is not formatted.
set -euo pipefail
cd "$(dirname "$0")/.."

# `cargo fmt` has the same two modes, under the same name.
cargo fmt ${1:+"$1"}
node_modules/.bin/prettier "${1:---write}" --no-error-on-unmatched-pattern \
  package.json '{scripts,tests/js,www}/**/*.{js,mjs,ts,html,css}'
