# The programs in a container; docs/install.md says how to run them.
#
#   docker build -t airtcp .                    simulations, RRTP: no privilege at all
#   docker build -t airtcp:tun --target tun .   TUN devices: --cap-add NET_ADMIN --device /dev/net/tun
FROM rust:1-slim-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked --bins

FROM debian:bookworm-slim AS base
RUN useradd --system --uid 999 --user-group --no-create-home airtcp
COPY --from=build /src/target/release/airtcp /src/target/release/basestation /usr/local/bin/
COPY LICENSE-MIT LICENSE-APACHE /usr/share/doc/airtcp/
ENTRYPOINT ["airtcp"]

# The programs have CAP_NET_ADMIN from their files, since Docker gives a user other than root none. The kernel refuses to run
# them in a container without it.
FROM base AS tun
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libcap2-bin \
    && setcap cap_net_admin+ep /usr/local/bin/airtcp \
    && setcap cap_net_admin+ep /usr/local/bin/basestation \
    && rm -rf /var/lib/apt/lists/*
USER 999

FROM base AS plain
USER 999
