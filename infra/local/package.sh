#!/usr/bin/env bash
# package.sh VENV FUNCTION...: builds target/package/ARCHITECTURE/FUNCTION.zip for provided.al2023,
# without Docker: cargo-lambda, with zig as the linker where it cross-compiles.
#
# An architecture whose target cannot be installed is skipped with a message; the other is built.
set -euo pipefail

root="$(cd "$(dirname "$0")/../.." && pwd)"
cd "$root"
venv="$(cd "$1" && pwd)"
shift
export PATH="$venv/bin:$PATH"
# cargo-lambda would ask for its own newest version.
export CARGO_LAMBDA_NO_UPDATE_CHECK=1 CARGO_NET_RETRY="${CARGO_NET_RETRY:-2}"

build() {
    local architecture=$1 target=$2 flag=$3
    if ! rustup target list --installed 2>/dev/null | grep -qx "$target" &&
        ! rustup target add "$target" >/dev/null 2>&1; then
        echo "package: $architecture is skipped: the Rust target $target cannot be installed here"
        return
    fi
    mkdir -p "target/package/$architecture"
    for function in "${functions[@]}"; do
        # Each by itself: built together, all would get what one of them asks for (schemas).
        cargo lambda build --release --locked "$flag" --output-format zip \
            --lambda-dir "target/lambda/$architecture" --package "waybill-$function"
        cp "target/lambda/$architecture/waybill-$function/bootstrap.zip" \
            "target/package/$architecture/$function.zip"
    done
}

functions=("$@")
for architecture in ${ARCHITECTURES:-x86_64 arm64}; do
    case "$architecture" in
        x86_64) build x86_64 x86_64-unknown-linux-gnu --x86-64 ;;
        arm64) build arm64 aarch64-unknown-linux-gnu --arm64 ;;
        *) echo "package: $architecture is none of x86_64, arm64" >&2 && exit 2 ;;
    esac
done

# Amazon Linux 2023 has glibc 2.34; and a zip whose bootstrap cannot be executed starts nothing.
python3 - target/package <<'PYTHON'
import re, sys, zipfile
from pathlib import Path

for package in sorted(Path(sys.argv[1]).glob("*/*.zip")):
    archive = zipfile.ZipFile(package)
    entry = archive.getinfo("bootstrap")
    assert entry.external_attr >> 16 & 0o111, f"{package}: bootstrap is not executable"
    versions = re.findall(rb"GLIBC_2\.(\d+)", archive.read(entry))
    glibc = max((int(version) for version in versions), default=0)
    assert glibc <= 34, f"{package}: needs glibc 2.{glibc}, Amazon Linux 2023 has 2.34"
    print(
        f"{package}: {package.stat().st_size / 1e6:.2f} MB,"
        f" bootstrap {entry.file_size / 1e6:.2f} MB, glibc 2.{glibc}"
    )
PYTHON
