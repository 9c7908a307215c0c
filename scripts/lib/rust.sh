#!/usr/bin/env bash
# Makes the Rust compiler able to build for the browser (wasm32-unknown-unknown). Exits with 0 when
# it can; env.sh then picks the compiler.
set -euo pipefail
. "$(dirname "$0")/../env.sh"
. scripts/lib/apt.sh

# A mirror that is not there can hang instead of answering; macOS has no `timeout`.
add_rustup_target() {
  local limit=()
  ! command -v timeout >/dev/null || limit=(timeout 60)
  ${limit[@]+"${limit[@]}"} rustup target add wasm32-unknown-unknown
}

has_wasm_target && exit

if [ "${WGRAD_TOOLCHAIN:-}" != debian ] && command -v rustup >/dev/null; then
  say "setup: adding the wasm32-unknown-unknown target with rustup"
  if quietly add_rustup_target && has_wasm_target; then exit; fi
  say "setup: rustup could not add the target"
fi

if can_install_debian_packages; then
  exec bash scripts/lib/debian-rust.sh
fi
say "setup: no Rust compiler here can build for wasm32-unknown-unknown; nothing can be built." \
  "Install Rust with rustup, then: rustup target add wasm32-unknown-unknown"
exit 1
