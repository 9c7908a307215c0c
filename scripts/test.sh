#!/usr/bin/env bash
# Runs all tests, or one stage of them: test.sh [lint|native|chrome|firefox|js] [ARGUMENT...].
# Further arguments go to the stage's test runner: `test.sh chrome --test ops rms_norm`.
set -euo pipefail
scripts=$(dirname "$0")
bash "$scripts/setup.sh" test
. "$scripts/env.sh"

only=${1:-}
[ -z "$only" ] || shift
case $only in
  "" | lint | native | chrome | firefox | js) ;;
  *) say "usage: scripts/test.sh [lint|native|chrome|firefox|js] [ARGUMENT...]" && exit 2 ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
log=$work/log
summary="" passed=0 failed=0

finish() {
  printf '\nSummary:\n%s\n%d passed, %d failed\n' "$summary" "$passed" "$failed"
  exit $((failed > 0))
}

# record MARK NAME: adds the step that began at $began to the summary.
record() {
  local line
  line=$(printf '%-6s %s, %d s' "$1" "$2" $((SECONDS - began)))
  summary+="  $line"$'\n'
  echo "--- $line"
}

# step NAME COMMAND...: runs it in sight, and ends the run if it fails.
step() {
  local name=$1
  shift
  began=$SECONDS
  printf '\n=== %s\n' "$name"
  "$@" 2>&1 | tee "$log" && return
  local counted
  counted=$(count failed)
  failed=$((failed + (counted > 0 ? counted : 1)))
  passed=$((passed + $(count passed)))
  record FAILED "$name"
  finish
}

check() {
  step "$@"
  record ok "$1"
}

# Like check, for a runner that counts tests: a run without any has not tested anything.
tests() {
  step "$@"
  local number
  number=$(count passed)
  passed=$((passed + number))
  if [ "$number" = 0 ]; then
    failed=$((failed + 1))
    record FAILED "$1 ran no test"
    finish
  fi
  record ok "$1: $number passed"
}

# count passed|failed: sums up the closing lines of cargo's and wasm-bindgen's runners ("test
# result: ok. 3 passed; 0 failed; ...") and node's ("ℹ pass 3").
count() {
  sed -n -E "s/^test result: .* ([0-9]+) $1;.*/\1/p; s/^ℹ ${1%ed} ([0-9]+)\$/\1/p" "$log" |
    awk '{ sum += $1 } END { print sum + 0 }'
}

# in_browser chrome|firefox ARGUMENT...: --nocapture shows what passing tests print (the adapter,
# the errors measured). The limits are for a whole test file and for a busy machine.
in_browser() {
  local browser=$1 driver=geckodriver
  shift
  [ "$browser" = firefox ] || driver=chromedriver
  node scripts/browser.mjs webdriver "$browser" >"$work/webdriver.json" || return
  # The runner takes the first driver that it finds a variable for, so the others must be unset.
  env -u CHROMEDRIVER -u GECKODRIVER -u SAFARIDRIVER -u NO_HEADLESS \
    "$(echo "$driver" | tr '[:lower:]' '[:upper:]')=$(node scripts/browser.mjs "$driver")" \
    CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER=wasm-bindgen-test-runner \
    WASM_BINDGEN_TEST_WEBDRIVER_JSON="$work/webdriver.json" \
    WASM_BINDGEN_TEST_TIMEOUT="${WASM_BINDGEN_TEST_TIMEOUT:-1200}" \
    WASM_BINDGEN_TEST_DRIVER_TIMEOUT=60 \
    cargo test --no-fail-fast --target wasm32-unknown-unknown --lib --tests "$@" -- --nocapture
}

lint() {
  check "formatting" bash scripts/format.sh --check
  check "clippy" cargo clippy --all-targets -- -D warnings
  check "clippy for wasm32" \
    cargo clippy --all-targets --target wasm32-unknown-unknown -- -D warnings
}

native() { tests "native tests" cargo test --no-fail-fast "$@"; }
chrome() { tests "tests in Chrome" in_browser chrome "$@"; }
firefox() { tests "tests in Firefox" in_browser firefox "$@"; }

js() {
  check "package" bash scripts/build.sh
  check "package's types" tsc --noEmit -p tests/js
  # Named one by one: given a folder, some versions of node take every file in it for a test.
  local files
  files=$(find tests/js -name '*.test.*js' | sort)
  # A failed test leaves its browser open, which would keep node waiting: hence force-exit.
  tests "JavaScript tests" node --test --test-reporter=spec --test-force-exit \
    --test-timeout=900000 "$@" ${files:-no-test-files}
}

if [ -n "$only" ]; then
  "$only" "$@"
else
  lint
  native
  chrome
  firefox
  js
fi
finish
