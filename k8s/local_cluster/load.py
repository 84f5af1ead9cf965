"""A load test as a Job on the cluster: rendered from the chart, followed, and its verdict brought home.

The release itself is not touched: the chart is rendered with the release's own values and `loadTest` over them, and
only the Job and its ConfigMap are applied.
"""

import json
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from local_cluster.providers import load_image
from local_cluster.release import RELEASE
from local_cluster.target import Target
from local_cluster.tools import FOLDER, ROOT, ToolError, capture, environment, run, succeeds

REPORT = ROOT / "load-report"
"""Where the report, the log and the verdict of the last run are."""

BEGIN, END = "-----BEGIN REPORT-----", "-----END REPORT-----"  # printed by k6/run around the report

VERDICTS = {0: "pass", 1: "fail", 2: "invalid"}
INVALID = 2

POLL_S = 1.0
# The images of a pod are on the node, or come from a registry; its photos take seconds once the service is up.
START_S = 420.0
# From a container's end to the pod's status that tells of it.
STATUS_S = 30.0

# Settings of the scenarios (k6/README.md) that are no value of their own in the chart.
SETTINGS = (
    "MAX_DRIFT_PERCENT", "MAX_ERROR_PERMILLE", "MIN_CEILING", "RESOLUTION_PERCENT", "SENDERS", "SPIKE_FACTOR",
    "SPIKE_P99_MS", "TIMEOUT_S",
)  # fmt: skip

# Waiting reasons that do not pass by themselves.
HOPELESS = {"ErrImageNeverPull", "ImagePullBackOff", "InvalidImageName", "CreateContainerConfigError"}


def seconds(text: str) -> int:
    """Return a duration ("90", "90s", "2m", "1h") in seconds."""
    unit = {"s": 1, "m": 60, "h": 3600}.get(text[-1:], 0)
    number = text[:-1] if unit else text
    if not number.isdigit() or int(number) == 0:
        raise ToolError(f"DURATION={text} is no duration: 90, 90s, 2m or 1h, for example")
    return int(number) * (unit or 1)


def number(name: str, text: str) -> int | float:
    """Return the number that a variable holds."""
    try:
        value = float(text)
    except ValueError as error:
        raise ToolError(f"{name}={text} is no number") from error
    return int(value) if value.is_integer() else value


def values(environ: Mapping[str, str], *, local_image: bool) -> dict[str, Any]:
    """Return the chart's `loadTest` for what the variables ask for."""
    # Another name each time: the Job of an earlier run must not be taken for this one's.
    asked: dict[str, Any] = {"enabled": True, "run": f"{time.time()}"}
    for name, key in (("SCENARIO", "scenario"), ("MIX", "mix")):
        if environ.get(name):
            asked[key] = environ[name]
    for name, key in (("RATE", "rate"), ("SEED", "seed"), ("P99_MS", "p99Ms")):
        if environ.get(name):
            asked[key] = number(name, environ[name])
    if environ.get("DURATION"):
        asked["durationSeconds"] = seconds(environ["DURATION"])
    asked["settings"] = {name: number(name, environ[name]) for name in SETTINGS if environ.get(name)}
    if local_image:
        repository, _, tag = load_image().name.rpartition(":")
        asked["image"] = {"repository": repository, "tag": tag, "digest": ""}
    return {"loadTest": asked}


def load(target: Target, namespace: str, environ: Mapping[str, str], report: Path = REPORT) -> int:
    """Run a load test; return 0 for pass, 1 for fail, 2 for invalid.

    Raises:
        ToolError: it could not be run at all.

    """
    scope = f"--namespace={namespace}"
    if not succeeds(*target.helm("status", RELEASE, scope)):
        raise ToolError(f"there is no release {RELEASE} in namespace {namespace}: run `make up`")
    asked = values(environ, local_image=target.provider is not None)
    report.mkdir(exist_ok=True)
    for old in ("report.html", "log.txt", "line.json"):
        (report / old).unlink(missing_ok=True)
    with _applied(target, scope, _rendered(target, scope, asked)) as job:
        pod = _started(target, scope, job)
        _follow(target, scope, pod, report)
        ended = _ended(target, scope, pod)
    message = ended.get("message", "")
    (report / "line.json").write_text(f"{message}\n")
    code = ended["exitCode"]
    if code not in VERDICTS:
        raise ToolError(f"the load generator ended with status {code} ({ended.get('reason', '')}): {message}")
    told = f"; report: {report / 'report.html'}" if (report / "report.html").exists() else ""
    print(f"{VERDICTS[code].upper()} (exit code {code}){told}", flush=True)
    return int(code)


def _rendered(target: Target, scope: str, asked: Mapping[str, Any]) -> str:
    """Return the Job and its ConfigMap as the release's chart and values make them."""
    server = json.loads(capture(*target.kubectl("version", "--output=json")))["serverVersion"]["gitVersion"]
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        ours, theirs = Path(folder, "load.json"), Path(folder, "release.json")
        ours.write_text(json.dumps(asked))
        theirs.write_text(capture(*target.helm("get", "values", RELEASE, scope, "--output=json")))
        parts = [f"--show-only=templates/load/{name}.yaml" for name in ("configmap", "job")]
        # `helm get values` prints null where nothing was set.
        given = [f"--values={path}" for path in (theirs, ours) if path.read_text().strip() != "null"]
        chart = str(ROOT / "charts/assay")
        return capture(*target.helm("template", RELEASE, chart, scope, f"--kube-version={server}", *parts, *given))


@contextmanager
def _applied(target: Target, scope: str, manifest: str) -> Iterator[str]:
    """Apply the objects; give the name that Job and ConfigMap share, and remove both in the end."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", dir=FOLDER) as file:
        file.write(manifest)
        file.flush()
        names = capture(*target.kubectl(scope, "create", f"--filename={file.name}", "--output=name")).split()
    try:
        yield next(name for name in names if name.startswith("job")).partition("/")[2]
    finally:
        run(*target.kubectl(scope, "delete", "--wait=false", *names))


def state(pod: Mapping[str, Any]) -> str:
    """Return what a pod is at, in a few words; ToolError where it will never run."""
    status = pod.get("status", {})
    for each in [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]:
        waiting, ended = each["state"].get("waiting", {}), each["state"].get("terminated", {})
        if waiting.get("reason") in HOPELESS:
            raise ToolError(f"{each['name']} cannot start: {waiting['reason']}, {waiting.get('message', '')}")
        if each["name"] == "images" and ended and ended["exitCode"] != 0:
            raise ToolError("the photos were not made; the end of what was said:")
        if each["name"] == "images" and "running" in each["state"]:
            return "photos are made, and classified with the model that serves"
        if each["name"] == "k6" and (ended or "running" in each["state"]):
            return "running"
    return str(status.get("phase", "Pending")).lower()


def _started(target: Target, scope: str, job: str) -> str:
    """Return the name of the Job's pod once k6 runs in it."""
    began, shown = time.monotonic(), ""
    while time.monotonic() - began < START_S:
        pods = json.loads(capture(*target.kubectl(scope, "get", "pods", f"--selector=job-name={job}", "--output=json")))
        now = "no pod yet"
        for pod in pods["items"]:
            try:
                now = state(pod)
            except ToolError as error:
                name = pod["metadata"]["name"]
                log = capture(*target.kubectl(scope, "logs", name, "--container=images", "--ignore-errors", "--tail=5"))
                raise ToolError(f"{error}\n{log}") from error
            if now == "running":
                return str(pod["metadata"]["name"])
        if now != shown:
            print(f"{time.monotonic() - began:6.0f} s  {job}: {now}", flush=True)
            shown = now
        time.sleep(POLL_S)
    raise ToolError(f"{job} did not start within {START_S:.0f} s; last seen: {shown}")


def _follow(target: Target, scope: str, pod: str, report: Path) -> None:
    """Show the log as it is written; what stands between the marks becomes the report."""
    words = [str(word) for word in target.kubectl(scope, "logs", "--follow", pod, "--container=k6")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment()) as process:
        if process.stdout is not None:
            split(process.stdout, report)


def split(lines: IO[str], report: Path) -> None:
    """Print lines and keep them in log.txt, apart from the report, which becomes report.html."""
    inside: list[str] | None = None
    with (report / "log.txt").open("w") as log:
        for line in lines:
            if line.rstrip("\n") == BEGIN:
                inside = []
            elif line.rstrip("\n") == END and inside is not None:
                (report / "report.html").write_text("".join(inside))
                inside = None
            elif inside is not None:
                inside.append(line)
            else:
                log.write(line)
                print(line, end="", flush=True)


def _ended(target: Target, scope: str, pod: str) -> dict[str, Any]:
    """Return how k6's container ended: exitCode, reason, message."""
    deadline = time.monotonic() + STATUS_S
    while time.monotonic() < deadline:
        found = json.loads(capture(*target.kubectl(scope, "get", "pod", pod, "--output=json")))
        for each in found["status"].get("containerStatuses", []):
            if each["name"] == "k6" and "terminated" in each["state"]:
                return dict(each["state"]["terminated"])
        time.sleep(POLL_S)
    raise ToolError(f"the log of {pod} ended, but it did not: look with kubectl describe pod {pod}")
