#!/bin/sh
# Installs what a make target needs and this machine lacks: install.sh servers [race] [browser]
#
#   servers  PostgreSQL and RabbitMQ; only their programs are used
#   race     a C compiler and headers, which go test -race needs on Linux
#   browser  Chromium, in which the console's pages are tested
#
# Debian and Ubuntu: through apt-get, as root or with sudo, which may ask for the password when this runs at a terminal.
# Elsewhere it says what to install.
# The packages' own services are not started: they would take the standard ports, and a bank runs private ones.
set -eu

missing=
names=
want() { # want DEBIAN-PACKAGES HOMEBREW-FORMULAE
	missing="$missing $1"
	names="$names
  $1 (Homebrew: $2)"
}

# has_any says whether one of the paths, or of the matches of a pattern, exists.
has_any() {
	for path in "$@"; do
		[ -e "$path" ] && return 0
	done
	return 1
}

for what in "$@"; do
	case $what in
	servers)
		has_any /usr/lib/postgresql/*/bin/postgres /opt/homebrew/opt/postgresql*/bin/postgres \
			/usr/local/opt/postgresql*/bin/postgres /home/linuxbrew/.linuxbrew/opt/postgresql*/bin/postgres ||
			command -v postgres >/dev/null 2>&1 || want postgresql postgresql@17
		has_any /usr/lib/rabbitmq/bin/rabbitmq-server /opt/homebrew/opt/rabbitmq/sbin/rabbitmq-server \
			/usr/local/opt/rabbitmq/sbin/rabbitmq-server /home/linuxbrew/.linuxbrew/opt/rabbitmq/sbin/rabbitmq-server ||
			command -v rabbitmq-server >/dev/null 2>&1 || want rabbitmq-server rabbitmq
		;;
	race)
		[ "$(uname -s)" = Darwin ] || {
			command -v "${CC:-gcc}" >/dev/null 2>&1 && has_any /usr/include/stdlib.h
		} || want "gcc libc6-dev" gcc
		;;
	browser)
		has_any "/Applications/Google Chrome.app" /Applications/Chromium.app ||
			command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1 ||
			command -v google-chrome >/dev/null 2>&1 || command -v google-chrome-stable >/dev/null 2>&1 ||
			want chromium "--cask chromium"
		;;
	*)
		echo "install.sh: unknown: $what" >&2
		exit 2
		;;
	esac
done
[ -n "$missing" ] || exit 0

please() {
	echo "Please install, and run this again:$names" >&2
	exit 1
}

if ! command -v apt-get >/dev/null 2>&1; then
	please
elif [ "$(id -u)" -eq 0 ]; then
	as_root=
elif ! command -v sudo >/dev/null 2>&1; then
	please
elif [ -t 0 ]; then
	echo "installing with sudo:$missing"
	sudo -v || please # asks once, here where it can be refused
	as_root=sudo
elif sudo -n true 2>/dev/null; then
	as_root="sudo -n"
else
	please
fi

[ "$as_root" = sudo ] || echo "installing:$missing"

# Package scripts ask policy-rc.d before they start a service. One that is there stays: it is somebody's decision.
policy=/usr/sbin/policy-rc.d
if [ -e "$policy" ]; then
	policy=
else
	# shellcheck disable=SC2086 # empty or two words
	printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null
	# shellcheck disable=SC2086
	$as_root chmod 755 "$policy"
fi
restore() {
	# shellcheck disable=SC2086
	[ -z "$policy" ] || $as_root rm -f "$policy"
}
trap restore EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# RUNLEVEL=1 keeps services down where the policy that is there would allow them (without systemd).
apt() {
	# shellcheck disable=SC2086
	$as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get "$@"
}
apt update -q
# shellcheck disable=SC2086 # a list of packages
apt install -q -y --no-install-recommends $missing

# They would start with the machine from now on. They were not here before, so nobody relies on it.
if [ -d /run/systemd/system ]; then
	for service in postgresql rabbitmq-server; do
		case " $missing " in
		*" $service "*)
			# shellcheck disable=SC2086
			$as_root systemctl disable --now "$service" >/dev/null 2>&1 || true
			;;
		esac
	done
fi
