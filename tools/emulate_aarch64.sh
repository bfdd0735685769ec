#!/bin/sh
# Makes an aarch64 Python with all that Sardonyx and its tests need, run by qemu, in a folder of its
# own: tools/emulate_aarch64.sh [FOLDER]. It then is FOLDER/usr/bin/python. Debian or Ubuntu with
# `qemu-user` is needed; packages come from wherever apt and pip of this machine get theirs, and
# nothing outside the folder changes.
set -eu

folder=${1:-build/aarch64}
if ! qemu=$(command -v "${QEMU:-qemu-aarch64}"); then
    echo "install qemu-user first, or set QEMU to its qemu-aarch64" >&2
    exit 1
fi
project=$(dirname "$0")/../pyproject.toml
mkdir -p "$folder/apt/state/lists/partial" "$folder/apt/cache/archives/partial"
folder=$(cd "$folder" && pwd)
: >"$folder/apt/state/status"
cat >"$folder/apt/apt.conf" <<CONFIGURATION
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Install-Recommends "false";
APT::Sandbox::User "";
Debug::NoLocking "true";
Dir::State "$folder/apt/state";
Dir::State::status "$folder/apt/state/status";
Dir::Cache "$folder/apt/cache";
CONFIGURATION
APT_CONFIG=$folder/apt/apt.conf
export APT_CONFIG
apt-get --quiet=2 update
apt-get --quiet=2 --yes --download-only install python3 libstdc++6 zlib1g
for package in "$folder"/apt/cache/archives/*.deb; do
    dpkg-deb --extract "$package" "$folder"
done

version=$(basename "$(readlink "$folder/usr/bin/python3")")
python3 - "$project" >"$folder/requirements.txt" <<PROGRAM
import sys, tomllib
project = tomllib.load(open(sys.argv[1], "rb"))["project"]
print(*project["dependencies"], *project["optional-dependencies"]["test"], sep="\n")
PROGRAM
python3 -m pip install --quiet --upgrade --target "$folder/usr/lib/python3/dist-packages" \
    --only-binary=:all: --implementation cp --python-version "${version#python}" \
    --platform manylinux2014_aarch64 --platform manylinux_2_17_aarch64 \
    --platform manylinux_2_26_aarch64 --platform manylinux_2_27_aarch64 \
    --platform manylinux_2_28_aarch64 --requirement "$folder/requirements.txt"

cat >"$folder/usr/bin/python" <<WRAPPER
#!/bin/sh
exec "$qemu" -L "$folder" -cpu "\${QEMU_CPU:-max}" -0 "$folder/usr/bin/python" \\
    "$folder/usr/bin/$version" "\$@"
WRAPPER
chmod +x "$folder/usr/bin/python"
"$folder/usr/bin/python" -c "import platform, numpy, llvmlite; print(platform.machine(), 'is ready')"
