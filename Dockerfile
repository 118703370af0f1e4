# The broker in a container: docker build -t partita . && docker run -p 9092:9092 partita
FROM python:3.13-slim AS build
# The compiler of the base image's release is wanted, whichever it is.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --wheel-dir /wheels '.[fast]'

FROM python:3.13-slim
# There is one version of each package in the folder.
# hadolint ignore=DL3013
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-index --find-links=/wheels 'partita[fast]' \
    && useradd --system --create-home --uid 10001 partita \
    && install --directory --owner=partita --mode=0700 /data
USER 10001
VOLUME /data
EXPOSE 9092
# Clients outside go to the advertised address; set it to the name they know this host by.
ENV PARTITA_ADVERTISED=localhost:9092
HEALTHCHECK --interval=10s --timeout=5s CMD ["partita", "cluster", "--bootstrap", "127.0.0.1:9092"]
ENTRYPOINT ["/bin/sh", "-c", "exec partita broker --data-dir /data --set listeners=PLAINTEXT://0.0.0.0:9092 --set advertised.listeners=PLAINTEXT://$PARTITA_ADVERTISED \"$@\"", "partita"]
