#!/usr/bin/env bash
# The way to a wasm32 target without rustup's servers: Debian's current compiler (rustc-web), a
# standard library built once with it, and a rustup toolchain named "debian" that points to both.
set -euo pipefail
. "$(dirname "$0")/../env.sh"
. scripts/lib/apt.sh

say "setup: installing Debian's Rust compiler"
apt_install rustc-web cargo-web rust-web-src rust-web-clippy rustfmt-web rust-web-llvm
# The linker must be of the LLVM version that the compiler was built with.
llvm=$(dpkg-query -W -f '${Depends}' rust-web-llvm | sed -n 's/.*\bllvm-\([0-9]*\).*/\1/p')
apt_install "lld-$llvm"

host=$(/usr/bin/rustc -vV | sed -n 's/^host: //p')
version=$(dpkg-query -W -f '${Version}' rustc-web)
libdir=/usr/lib/rustlib/wasm32-unknown-unknown/lib

# A crate that holds nothing makes cargo build all of std. `test` is for wasm-bindgen-test.
build_std() {
  (
    cd "$1"
    # An unstable flag of a stable compiler, used for this one build only.
    export RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=$1/target
    unset RUSTFLAGS RUSTC_WRAPPER
    /usr/bin/cargo init --quiet --lib --vcs none --name holds_nothing
    /usr/bin/cargo build --release --target wasm32-unknown-unknown \
      -Zbuild-std=core,alloc,std,panic_abort,panic_unwind,proc_macro,test
    rm target/wasm32-unknown-unknown/release/deps/libholds_nothing-*.rlib
  )
}

if [ "$(cat $libdir/built-by 2>/dev/null)" != "$version" ]; then
  say "setup: building the wasm32 standard library with it (about 1 min)"
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  quietly build_std "$work"
  as_root rm -rf "$libdir"
  as_root mkdir -p "$libdir"
  as_root cp "$work"/target/wasm32-unknown-unknown/release/deps/*.rlib "$libdir"
  echo "$version" | as_root tee "$libdir/built-by" >/dev/null
fi

# Where the compiler looks for its own linker.
as_root mkdir -p "/usr/lib/rustlib/$host/bin"
as_root ln -sf "/usr/bin/lld-$llvm" "/usr/lib/rustlib/$host/bin/rust-lld"

! command -v rustup >/dev/null || quietly rustup toolchain link debian /usr
