# Sourced by the other scripts, from any folder: goes to the repository's root, names the pinned
# tools, puts them on the PATH and chooses the Rust compiler.

cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The only place where tool versions are pinned. wasm-bindgen's command must match the crate exactly.
wasm_pack_version=0.15.1
geckodriver_version=0.37.1
wasm_bindgen_version=$(sed -n '/^name = "wasm-bindgen"$/{n;s/version = "\(.*\)"/\1/p;}' Cargo.lock)

# Tools live outside the checkout, so that every clone shares them and nothing global is replaced.
tools=${XDG_CACHE_HOME:-$HOME/.cache}/wgrad/tools
for tool in "wasm-pack-$wasm_pack_version" "wasm-bindgen-cli-$wasm_bindgen_version" \
  "geckodriver-$geckodriver_version"; do
  PATH=$tools/$tool/bin:$PATH
done
export PATH=$PWD/node_modules/.bin:$PATH

say() { printf '%s\n' "$*" >&2; }

# Runs a command and shows what it printed only if it fails.
quietly() {
  local log status=0
  log=$(mktemp)
  "$@" >"$log" 2>&1 || status=$?
  [ "$status" = 0 ] || cat "$log" >&2
  rm -f "$log"
  return "$status"
}

# Whether the compiler in force has a standard library for the browser.
has_wasm_target() {
  local libdir
  libdir=$(rustc --print target-libdir --target wasm32-unknown-unknown 2>/dev/null) || return 1
  compgen -G "$libdir/libstd-*.rlib" >/dev/null || return 1
  # Debian's is built by lib/debian-rust.sh, and only fits the compiler that built it.
  [ ! -f "$libdir/built-by" ] ||
    [ "$(cat "$libdir/built-by")" = "$(dpkg-query -W -f '${Version}' rustc-web 2>/dev/null)" ]
}

# WGRAD_TOOLCHAIN=debian asks for Debian's compiler; otherwise it is used where it is set up and
# the default one cannot build for the browser.
if [ -n "${WGRAD_TOOLCHAIN:-}" ]; then
  export RUSTUP_TOOLCHAIN=$WGRAD_TOOLCHAIN
elif ! has_wasm_target && RUSTUP_TOOLCHAIN=debian has_wasm_target; then
  export RUSTUP_TOOLCHAIN=debian
fi
