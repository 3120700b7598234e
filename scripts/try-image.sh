#!/usr/bin/env bash
#
# try-image.sh IMAGE: run an image of a release, such as dist/livetree-v1.2.3-image-amd64.tar, by podman, with a root that is
# read-only, no capabilities and no network, and look at what it promises: its user, its health check, its volume, its end
# within 10 seconds. The file must be read as an image of OCI and as one of Docker. It needs the rights of root and no daemon. Where podman is not installed, nothing is checked, loudly;
# INSTALL=yes has apt-get install it.
set -euo pipefail

image=${1:?usage: scripts/try-image.sh IMAGE}
if [[ ${INSTALL:-} == yes ]]; then
	apt-get install -y --no-install-recommends podman crun skopeo >/dev/null || echo 'apt-get install failed' >&2
fi
command -v podman >/dev/null || { echo '*** SKIPPED, the image was NOT checked: install podman, or run this with INSTALL=yes' >&2; exit 0; }

# crun does not run where control groups of both versions are mounted, so it does not get to see the second one.
if mountpoint -q /sys/fs/cgroup/unified; then
	[[ -n ${LIVETREE_UNSHARED:-} ]] || LIVETREE_UNSHARED=yes exec unshare --mount --propagation private "$0" "$@"
	umount /sys/fs/cgroup/unified
fi

work=$(mktemp -d)
# Storage of its own: nothing is left behind, and no other container is seen.
podman=(podman --root "$work/storage" --runroot "$work/run" --storage-driver vfs --cgroup-manager cgroupfs --log-level fatal)
pod() { "${podman[@]}" "$@"; }
clean() {
	pod rm -f -t 0 tried >/dev/null 2>&1 || true
	pod volume rm -f tried >/dev/null 2>&1 || true
	rm -rf "$work"
}
trap clean EXIT
fail() {
	printf 'FAILED: %s\n' "$1" >&2
	pod logs tried 2>&1 | tail -n 20 >&2 || true
	exit 1
}
is() { [[ $2 == "$3" ]] && printf '  %s: %s\n' "$1" "$2" || fail "$1 is $2, want $3"; }

name=localhost/livetree:$(basename "$image" | sed 's/^livetree-\(.*\)-image-.*/\1/')
of() { pod image inspect "$name" --format "$1"; }

# The form of OCI, which has no health check.
pod load -q -i "$image" >/dev/null
is 'user of the OCI image' "$(of '{{.Config.User}}')" 65532:65532
is 'its kind' "$(of '{{.ManifestType}}')" application/vnd.oci.image.manifest.v1+json
is 'what it runs' "$(pod run --rm --pull never --cgroups disabled --ulimit nofile=4096:4096 --ulimit nproc=1024:1024 --network none "$name" version 2>/dev/null | head -n 1)" "livetree ${name##*:}"
pod rmi -f "$name" >/dev/null
if command -v skopeo >/dev/null; then
	skopeo copy -q "oci-archive:$image" "dir:$work/copy" || fail 'skopeo does not read it'
	printf '  skopeo copies it: %d files\n' "$(find "$work/copy" -type f | wc -l)"
else
	echo '*** SKIPPED, the image was NOT read by skopeo: install it, or run this with INSTALL=yes' >&2
fi

# The form of Docker, which has one.
pod pull -q "docker-archive:$image" >/dev/null
is user "$(of '{{.Config.User}}')" 65532:65532
is 'health check' "$(of '{{.HealthCheck.Test}}')" '[CMD /livetree ready]'
is volume "$(of '{{.Config.Volumes}}')" 'map[/data:{}]'
is 'stop signal' "$(of '{{.Config.StopSignal}}')" SIGTERM

# What the machine allows may be less than podman asks for. Health checks are run by hand: their timers need systemd.
start() {
	pod run -d --pull never --name tried --cgroups disabled --ulimit nofile=4096:4096 --ulimit nproc=1024:1024 --health-interval disable \
		--read-only --read-only-tmpfs=false --cap-drop all --security-opt no-new-privileges --network none -v tried:/data "$name" >/dev/null 2>"$work/said" || { cat "$work/said" >&2; fail 'it does not start'; }
	local n
	for ((n = 0; n < 120; n++)); do
		pod healthcheck run tried >/dev/null 2>&1 && return
		sleep 0.5
	done
	fail 'it is not healthy after a minute'
}
start
printf '  healthy\n'
is 'user of the process' "$(stat -c %u "/proc/$(pod inspect tried --format '{{.State.Pid}}')")" 65532
pod exec tried /livetree set /tried '"yes"' 2>/dev/null >/dev/null || fail 'nothing can be written'
if said=$(pod exec tried /livetree backup /outside 2>&1) || [[ $said != *read-only* ]]; then
	fail "a backup outside of the volume: $said, want that it is read-only"
fi
printf '  the root is read-only\n'
began=${EPOCHREALTIME/./}
pod stop -t 10 tried >/dev/null 2>&1
took=$(((${EPOCHREALTIME/./} - began) / 1000))
is 'exit code after SIGTERM' "$(pod inspect tried --format '{{.State.ExitCode}}')" 0 # 137 if it was killed after 10 seconds
pod rm tried >/dev/null 2>&1
start
is 'data in the volume' "$(pod exec tried /livetree get /tried 2>/dev/null)" '"yes"'
printf 'the image does what it promises; it stopped in %d ms\n' "$took"
