#!/usr/bin/env bash
# Installs the pinned command-line tools that are written in Rust, where the PATH has no such
# version. `tools.sh build` leaves out what only the tests need.
set -euo pipefail
. "$(dirname "$0")/../env.sh"

# The version that a command on the PATH reports, or nothing.
version_of() {
  "$1" --version 2>/dev/null | sed -n '1s/^[^0-9]*\([0-9.]*[0-9]\).*/\1/p' || true
}

# Not every registry has all that a tool's lock file names; then newer dependencies have to do.
cargo_install() {
  quietly cargo install --quiet --locked "$@" 2>/dev/null || quietly cargo install --quiet "$@"
}

# ensure CRATE VERSION OPT_LEVEL COMMAND...: has the crate's commands in that version on the PATH.
ensure() {
  local crate=$1 version=$2 opt_level=$3 command missing=""
  shift 3
  for command; do
    [ "$(version_of "$command")" = "$version" ] || missing=$command
  done
  [ -n "$missing" ] || return 0

  say "setup: compiling $crate $version (1 to 3 min, once)"
  # Built aside and moved, so that a stopped set-up leaves no half-installed tool behind.
  local dest=$tools/$crate-$version aside=$tools/.$crate.$$
  CARGO_TARGET_DIR=$build_dir CARGO_PROFILE_RELEASE_OPT_LEVEL=$opt_level \
    cargo_install --version "$version" --root "$aside" "$crate"
  rm -rf "$dest"
  mv "$aside" "$dest"
}

mkdir -p "$tools"
build_dir=$tools/.build.$$
trap 'rm -rf "$build_dir" "$tools"/.*.$$' EXIT

# These tools run for seconds, so a quick compile matters more than their speed; only wasm-bindgen,
# which chews through megabytes, is optimised.
export CARGO_PROFILE_RELEASE_LTO=false CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
  CARGO_PROFILE_RELEASE_DEBUG=0

ensure wasm-bindgen-cli "$wasm_bindgen_version" 1 wasm-bindgen wasm-bindgen-test-runner
ensure wasm-pack "$wasm_pack_version" 0 wasm-pack
[ "$1" = build ] || ensure geckodriver "$geckodriver_version" 0 geckodriver
