#!/usr/bin/env bash
# Serves the demo and prints its address. Further arguments go to Vite: `demo.sh --port 8080`.
set -euo pipefail
scripts=$(dirname "$0")
bash "$scripts/setup.sh" build
. "$scripts/env.sh"

# Whether pkg/ is missing or older than anything that it is made of.
is_stale() {
  [ ! -f pkg/package.json ] || [ -n "$(find src shaders build.rs Cargo.toml Cargo.lock \
    -newer pkg/package.json -print 2>/dev/null | head -n 1)" ]
}
! is_stale || bash scripts/build.sh

# Only a desktop has a browser to open.
if [ "$(uname)" = Darwin ] || [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ]; then
  set -- --open "$@"
fi
exec vite www "$@"
