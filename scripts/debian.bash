# debian.bash is read by scripts that try the package in a Debian of its own.
#
# make_debian ROOT [PROGRAM...] makes one in the directory ROOT by debootstrap, with systemd. If there is one it is taken as it
# is. Where debootstrap or another program is missing it says so loudly, and ends the script without an error: nothing was checked.
# INSTALL=yes has apt-get install what is missing.
make_debian() {
	local root=$1 log program
	shift
	if [[ ${INSTALL:-} == yes ]]; then
		apt-get install -y --no-install-recommends systemd-container debootstrap >/dev/null || echo 'apt-get install failed' >&2
	fi
	for program in debootstrap "$@"; do
		command -v "$program" >/dev/null || { echo "*** SKIPPED, $0 did NOT try the package: install $program, or run this with INSTALL=yes" >&2; exit 0; }
	done
	[[ ! -e $root/etc/debian_version ]] || return 0
	echo 'debootstrap, which takes minutes'
	log=$(mktemp)
	debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,adduser,curl bookworm "$root" >"$log" || { tail "$log" >&2; rm -f "$log"; exit 1; }
	rm -f "$log"
}
