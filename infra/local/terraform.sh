#!/usr/bin/env bash
# Runs Terraform (or OpenTofu: TERRAFORM=tofu) in a folder: terraform.sh FOLDER ARGUMENT...
#
# Where the machine keeps providers in a filesystem mirror, it is used, and nothing is downloaded;
# anywhere else `init` downloads the provider as usual. WAYBILL_TERRAFORM_MIRROR names one.
set -euo pipefail

root="$(cd "$(dirname "$0")/../.." && pwd)"
folder="$(cd "$1" && pwd)"
shift

tool="${TERRAFORM:-terraform}"

# The mirror with the AWS provider in it (HOST/hashicorp/aws), wherever such mirrors usually are.
# OpenTofu has another host, so it is left to its own ways.
mirror() {
    [ "$(basename "$tool")" != tofu ] || return 0
    local found
    found="$(find ${WAYBILL_TERRAFORM_MIRROR:-/opt /usr/share /usr/local/share "$HOME/.terraform.d" "$HOME/.local/share"} \
        -maxdepth 5 -type d -path '*/hashicorp/aws' -print -quit 2>/dev/null || true)"
    [ -z "$found" ] || dirname "$(dirname "$(dirname "$found")")"
}

mkdir -p "$root/.cache"
found="$(mirror)"
if [ -n "$found" ]; then
    export TF_CLI_CONFIG_FILE="$root/.cache/terraform.rc"
    printf 'provider_installation {\n  filesystem_mirror {\n    path    = "%s"\n    include = ["*/*/*"]\n  }\n}\ndisable_checkpoint = true\n' \
        "$found" >"$TF_CLI_CONFIG_FILE"
elif [ -n "${TF_CLI_CONFIG_FILE:-}" ] && [ ! -e "$TF_CLI_CONFIG_FILE" ]; then
    unset TF_CLI_CONFIG_FILE
fi

# What `init` installs stays out of the sources, one folder per root module.
export TF_DATA_DIR="$root/.cache/terraform/$(basename "$folder")"
export TF_IN_AUTOMATION=1
exec "$tool" -chdir="$folder" "$@"
