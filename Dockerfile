# The service and the command line, as compose.yaml and the Helm chart run them.
FROM python:3.12-slim AS build

# Versions and hashes of the lock: a package that was changed since is refused. Pagefile itself is built from this folder, by the
# hatchling of the same lock.
WORKDIR /src
COPY requirements-image.lock ./
RUN python -m venv /opt/pagefile \
    && /opt/pagefile/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements-image.lock
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY src src
RUN /opt/pagefile/bin/pip install --no-cache-dir --disable-pip-version-check --no-deps --no-build-isolation .

FROM python:3.12-slim
COPY --from=build /opt/pagefile /opt/pagefile
# A number, so that Kubernetes can see that it is not root.
RUN useradd --uid 10001 --create-home pagefile && install --directory --owner pagefile /data
USER 10001
WORKDIR /data
VOLUME /data

# Beyond loopback nobody comes in without a key: `docker compose run --rm pagefile keys add NAME` makes the first one.
ENV PATH=/opt/pagefile/bin:$PATH PYTHONUNBUFFERED=1
ENV PAGEFILE_SERVICE__HOST=0.0.0.0
EXPOSE 8780
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8780/healthz', timeout=2)"]
# The supervisor ends its workers itself; Docker must wait until they have drained.
STOPSIGNAL SIGTERM
ENTRYPOINT ["pagefile"]
CMD ["serve"]
