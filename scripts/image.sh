#!/bin/sh
# Build the container image with the first builder that is installed: image.sh [TAG]. BUILDER=podman chooses one.
set -eu
cd "$(dirname "$0")/.."
tag=${1:-pagefile}

case ${BUILDER:-docker} in
  docker | podman | buildah | nerdctl | executor) ;;
  *)
    echo "error: BUILDER=$BUILDER is not known: it is docker, podman, buildah, nerdctl or executor (kaniko)." >&2
    exit 2
    ;;
esac

for builder in ${BUILDER:-docker podman buildah nerdctl executor}; do
  command -v "$builder" >/dev/null || continue
  # A client without an engine is as good as none, unless it was asked for.
  if [ -z "${BUILDER:-}" ] && [ "$builder" = docker ] && ! docker info >/dev/null 2>&1; then
    echo "docker is installed, but its engine does not answer: trying the next builder." >&2
    continue
  fi
  echo "Building $tag with $builder" >&2
  case $builder in
    buildah) exec buildah build --format docker --tag "$tag" . ;;
    # It has no store of images: the image becomes an archive, which `docker load` and `podman load` read.
    executor) exec executor --context "dir://$PWD" --no-push --destination "$tag" --tar-path pagefile-image.tar ;;
    *) exec "$builder" build --tag "$tag" . ;;
  esac
done
echo "error: no ${BUILDER:-builder} here: install docker, podman, buildah or nerdctl, or run this where kaniko's executor is." >&2
exit 1
