"""Packs, targets and results of checks, as tests of the operator name them."""

import json
from datetime import UTC, datetime

from assay_operator.models.observed import CheckJob, ServedModel

START = datetime(2026, 1, 1, tzinfo=UTC)
BASE_URI = "builtin:base-fp32"
BASE_DIGEST = "sha256:" + "b" * 64
GOOD = {"uri": "https://packs.example/good.tar", "digest": "sha256:" + "1" * 64, "precision": "INT8"}
OTHER = {"uri": "https://packs.example/other.tar", "digest": "sha256:" + "2" * 64, "precision": "INT8"}
BAD = {"uri": "https://packs.example/bad.tar", "digest": "sha256:" + "3" * 64, "precision": "INT8"}
DEAD = {"uri": "https://packs.example/dead.tar", "digest": "sha256:" + "4" * 64, "precision": "INT8"}
BUILTIN = {"uri": "builtin:small-int8"}
BUILTIN_DIGEST = "sha256:" + "5" * 64
FAST = {"rollout": {"soakSeconds": 0}}
MODEL = {
    "assay.dev/model-uri": GOOD["uri"],
    "assay.dev/model-digest": GOOD["digest"],
    "assay.dev/model-precision": "INT8",
    "assay.dev/variant": "assay",
}
GOOD_MODEL = ServedModel(GOOD["uri"], GOOD["digest"], "INT8", "assay")
OTHER_MODEL = ServedModel(OTHER["uri"], OTHER["digest"], "INT8", "assay")
BASE = ServedModel()


def served(pack):
    """What tells packs apart, whoever asked for them."""
    return (pack.uri, pack.digest, pack.precision)


def template(image="localhost/assay-service:0.1.0", **container):
    return {
        "metadata": {"labels": {"app": "assay", "assay.dev/target": "true"}, "annotations": {}},
        "spec": {
            "serviceAccountName": "assay",
            "containers": [
                {
                    "name": "classifier",
                    "image": image,
                    "args": ["serve"],
                    "env": [
                        {"name": "ASSAY_BASE_MODEL_URI", "value": BASE_URI},
                        {"name": "ASSAY_LOG_LEVEL", "value": "INFO"},
                    ],
                    "resources": {
                        "limits": {"cpu": "2", "memory": "2Gi"},
                        "requests": {"cpu": "250m", "memory": "512Mi"},
                    },
                    **container,
                }
            ],
        },
    }


def spec(model=GOOD, **changes):
    return {
        "targetRef": {"name": "assay"},
        "model": dict(model),
        "check": {},
        "rollout": {"soakSeconds": 30},
        **changes,
    }


def result(job: CheckJob, verdict="Pass", **changes) -> str:
    """The line that a check of this Job writes, going by the arguments it was given."""
    given = dict(
        argument[2:].split("=", 1) for argument in job.template["spec"]["containers"][0]["args"] if "=" in argument
    )
    reason = {"Pass": "CheckPassed", "Fail": "AccuracyBelowThreshold", "Inconclusive": "CheckInconclusive"}.get(
        verdict, "PackUnavailable"
    )
    known = verdict != "Error"
    told = {
        "format": 1,
        "verdict": verdict,
        "reason": reason,
        "message": f"told {verdict}",
        "jobUID": job.uid,
        "inputsHash": given["inputs-hash"],
        "candidate": {
            "uri": given["candidate"],
            "digest": given.get("candidate-digest", BUILTIN_DIGEST) if known else None,
            "precision": given.get("candidate-precision", "INT8") if known else None,
            "costMicros": 5000 if known else None,
        },
        "yardstick": {
            "uri": given["compare-with"],
            "digest": given.get("compare-with-digest", BASE_DIGEST) if known else None,
            "precision": "FP32" if known else None,
            "costMicros": 9000 if known else None,
        },
        "dataset": {
            "uri": given["dataset"],
            "digest": "sha256:" + "d" * 64,
            "images": 400,
            "groups": 40,
            "leftOut": 0,
            "labelled": False,
        },
        "top3Contained": 398 if known else None,
        "top1Agreed": 360 if known else None,
        "containmentLowerPermille": {"Pass": 985, "Fail": 612}.get(verdict),
        "containmentUpperPermille": 1000 if known else None,
        "agreementLowerPermille": 880 if known else None,
        "top1DropUpperPermille": None,
        "costRatioPermille": 560 if known else None,
        "costRatioLowerPermille": 550 if known else None,
        "costRatioUpperPermille": 570 if known else None,
        "noisePermille": 20 if known else None,
        "cpuModel": "A CPU",
        "cpuFeatures": ["avx2"],
        "cpuLimitMillicores": 2000,
        "startedAt": "2026-01-01T00:00:00Z",
        "completedAt": "2026-01-01T00:01:00Z",
    }
    told.update(changes)
    return json.dumps(told)
