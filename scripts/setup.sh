#!/usr/bin/env bash
# Gets what is needed to build wgrad (`setup.sh build`) or to test it as well (`setup.sh test`, the
# default). Needs Node.js and Rust; does nothing when all is there.
set -euo pipefail

# Before env.sh, which asks the compiler.
for command in node npm cargo; do
  if ! command -v "$command" >/dev/null; then
    echo "setup: $command is missing; install Node.js 20.19 or newer (with npm) and Rust" \
      "(with rustup), then run this again" >&2
    exit 1
  fi
done

. "$(dirname "$0")/env.sh"

goal=${1:-test}
case $goal in
  build | test) ;;
  *) say "usage: scripts/setup.sh [build|test]" && exit 2 ;;
esac

# Vite's own minimum.
if ! node -e '
  const [major, minor] = process.versions.node.split(".").map(Number);
  process.exit(major > 22 || (major === 22 && minor >= 12) || (major === 20 && minor >= 19) ? 0 : 1)
'; then
  say "setup: Node.js $(node --version) is too old; 20.19 or 22.12 or newer is needed"
  exit 1
fi

install_node_modules() {
  # npm writes the second file last, so it tells whether an installation was finished.
  [ package-lock.json -nt node_modules/.package-lock.json ] || return 0
  say "setup: installing the npm packages"
  quietly npm ci
}

# rustfmt and clippy do not come with rustup's minimal profile.
install_components() {
  local component
  for component in fmt clippy; do
    cargo "$component" --version >/dev/null 2>&1 && continue
    say "setup: adding cargo $component with rustup"
    quietly rustup component add "${component/fmt/rustfmt}"
  done
}

# The compiler comes first: env.sh has to see it before anything is compiled.
bash scripts/lib/rust.sh
. scripts/env.sh
[ "$goal" = build ] || install_components

# npm and apt wait for the network, cargo for the processor: together they take as long as cargo.
install_node_modules &
jobs_running=$!
if [ "$goal" = test ]; then
  bash scripts/lib/browsers.sh &
  jobs_running="$jobs_running $!"
fi
failed=""
bash scripts/lib/tools.sh "$goal" || failed=yes
for job in $jobs_running; do
  wait "$job" || failed=yes
done
if [ -n "$failed" ]; then
  say "setup: not complete; the lines above say what is missing"
  exit 1
fi
