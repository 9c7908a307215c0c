#!/usr/bin/env bash
# Builds the npm package in pkg/. Further arguments go to wasm-pack: `build.sh --dev` is quick.
set -euo pipefail
scripts=$(dirname "$0")
bash "$scripts/setup.sh" build
. "$scripts/env.sh"

# wasm-pack leaves what an earlier build wrote, and all that is there gets published.
rm -rf pkg
# no-install: wasm-pack takes wasm-bindgen and wasm-opt from the PATH and downloads nothing.
wasm-pack build --mode no-install --target web --out-dir pkg "$@"
case " $* " in
  *" --dev "* | *" --profiling "*) limit=--any-size ;;
  *) limit="" ;;
esac
node scripts/finish-package.mjs pkg $limit
