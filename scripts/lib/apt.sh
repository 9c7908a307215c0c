# Sourced: installing Debian's packages, where this is Debian and we may.

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

can_install_debian_packages() {
  [ -r /etc/os-release ] && grep -q '^ID=debian$' /etc/os-release && as_root true 2>/dev/null
}

update_package_lists() { quietly as_root apt-get update -q; }

# --no-remove: never trade a package that the user has for one of ours.
try_apt_install() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
    --no-remove -o DPkg::Lock::Timeout=300 "$@"
}

# The package lists may be missing or stale, so a failure is tried again with fresh ones.
apt_install() {
  try_apt_install "$@" >/dev/null 2>&1 && return
  update_package_lists
  quietly try_apt_install "$@"
}
