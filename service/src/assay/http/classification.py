"""The JSON of a classification: what ``/v1/classify`` answers, and what is stored of every encoded image."""

import json

from assay.packs.archive import Pack
from assay.serving.request import Answer


def classification(answer: Answer, pack: Pack, request_id: str) -> bytes:
    """Labels of an image, best first, the pack that gave them, and the request's id; scores to six digits."""
    manifest = pack.manifest
    content = {
        "predictions": [
            {"label": label, "index": index, "score": round(score, 6)} for index, label, score in answer.predictions
        ],
        "model": {"name": manifest.name, "precision": manifest.precision, "digest": pack.digest},
        "request_id": request_id,
    }
    return json.dumps(content).encode()
