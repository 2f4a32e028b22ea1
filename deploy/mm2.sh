#!/bin/sh
# Deploys the three connectors of a source cluster, see usage. Files: mm2/mm2-{cpc,hbc,msc}-<cluster>.json,
# in this folder or beside this script. MM2_DIR, CONNECT_URL and SPARKMIRROR (the program) may be set.
set -eu

usage() {
    echo "usage: $(basename "$0") deploy|undeploy|redeploy|status <cluster> [option ...]"
    echo "  deploy    create the connectors of <cluster> that are not RUNNING, and wait until they are"
    echo "  undeploy  delete them"
    echo "  redeploy  delete them and create them again"
    echo "  status    show them and their tasks"
    echo "Options go to sparkmirror: --url http://localhost:8083, --dir mm2, --timeout 60, --json (status)"
    exit 2
} >&2

case "${1:-}" in
    deploy | undeploy | redeploy | status) action=$1 ;;
    *) usage ;;
esac
case "${2:-}" in
    '' | -*) usage ;;
    *) cluster=$2 ;;
esac
shift 2

folder=mm2
[ -d "$folder" ] || folder=$(dirname "$0")/mm2
exec "${SPARKMIRROR:-sparkmirror}" "$action" "$cluster" --dir "${MM2_DIR:-$folder}" \
    --url "${CONNECT_URL:-http://localhost:8083}" "$@"
