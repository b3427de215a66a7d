# An image with the command slotkern: docker build -t slotkern . && docker run slotkern demo
FROM python:3.11-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ make \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /slotkern
COPY . .
RUN make demo
ENV PATH="/slotkern/.venv/bin:$PATH"
ENTRYPOINT ["slotkern"]
CMD ["--help"]
