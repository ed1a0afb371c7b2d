# The service and the command line, as compose.yaml runs them.
FROM python:3.12-slim

# The versions of the lock, without its hashes: pip would then want one for Pagefile itself too.
WORKDIR /src
COPY . .
RUN sed -E 's/ \\$//; /--hash/d' requirements.lock > /tmp/constraints.txt \
    && pip install --no-cache-dir -c /tmp/constraints.txt '.[postgres,redis,milvus,openai,otel]' \
    && rm -rf /src /tmp/constraints.txt

RUN useradd --create-home pagefile
USER pagefile
WORKDIR /home/pagefile

# Beyond loopback nobody comes in without a key: `docker compose run --rm pagefile keys add NAME` makes the first one.
ENV PAGEFILE_SERVICE__HOST=0.0.0.0
EXPOSE 8780
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8780/healthz', timeout=2)"]
# The supervisor ends its workers itself; Docker must wait until they have drained.
STOPSIGNAL SIGTERM
ENTRYPOINT ["pagefile"]
CMD ["serve"]
