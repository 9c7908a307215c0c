#!/usr/bin/env bash
# Installs the browsers that the tests drive, where they are missing and this is Debian.
set -euo pipefail
. "$(dirname "$0")/../env.sh"
. scripts/lib/apt.sh

has_vulkan() {
  [ "$(uname)" != Linux ] ||
    { compgen -G "/usr/share/vulkan/icd.d/*.json" && ls /usr/lib/*/libvulkan.so.1; } >/dev/null 2>&1
}

# Prints what is missing, by the name of Debian's package.
missing() {
  node scripts/browser.mjs chromium >/dev/null || echo chromium
  node scripts/browser.mjs chromedriver >/dev/null || echo chromium-driver
  node scripts/browser.mjs firefox >/dev/null || echo firefox-esr
  # Firefox has no software GPU of its own: it needs a Vulkan driver.
  has_vulkan || echo mesa-vulkan-drivers libvulkan1
}

packages=$(missing 2>/dev/null)
[ -n "$packages" ] || exit 0

if can_install_debian_packages; then
  say "setup: installing" $packages
  apt_install $packages
else
  say "setup: the browser tests cannot run: please install" $packages "(Debian's names for them)"
  exit 1
fi
